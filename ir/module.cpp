// Module: children, paths and lookup.
#include "ir/module.h"

#include "runtime/base/check.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace cgc::ir {

std::string Module::path() const {
  if (!parent_)
    return "";
  std::string prefix = parent_->path();
  return prefix.empty() ? name_ : prefix + "." + name_;
}

Module *Module::addSubmodule(std::unique_ptr<Module> module) {
  CGC_CHECK(!findSubmodule(module->name()) && "two submodules of one name");
  module->parent_ = this;
  submodules_.push_back(std::move(module));
  return submodules_.back().get();
}

void Module::addParameter(Parameter parameter) {
  CGC_CHECK(llvm::none_of(parameters_, [&](auto &p) { return p.name == parameter.name; }));
  parameters_.push_back(std::move(parameter));
}

void Module::setParameterData(llvm::StringRef name, std::shared_ptr<const TensorData> data) {
  auto it = llvm::find_if(parameters_, [&](auto &p) { return p.name == name; });
  CGC_CHECK(it != parameters_.end() && it->type == data->type());
  it->data = std::move(data);
}

void Module::makeState(llvm::StringRef path, StateRole role) {
  const auto [module, name] = resolve(path);
  CGC_CHECK(module && "there is no such module");
  const auto it =
      llvm::find_if(module->parameters_, [&, name = name](auto &p) { return p.name == name; });
  CGC_CHECK(it != module->parameters_.end() && "there is no such parameter");
  if (it->kind == Parameter::Kind::State)
    return;
  it->kind = Parameter::Kind::State;
  it->role = role;
}

void Module::setShard(llvm::StringRef path, uint32_t shard) {
  const auto [module, name] = resolve(path);
  CGC_CHECK(module && "there is no such module");
  const auto it =
      llvm::find_if(module->parameters_, [&, name = name](auto &p) { return p.name == name; });
  CGC_CHECK(it != module->parameters_.end() && it->kind == Parameter::Kind::State);
  it->shard = shard;
}

void Module::addAttribute(Attribute attribute) {
  CGC_CHECK(attribute.value.isConstant() && "an attribute is a constant");
  attributes_.push_back(std::move(attribute));
}

Graph *Module::addGraph(std::unique_ptr<Graph> graph) {
  CGC_CHECK(!findGraph(graph->name()) && "two graphs of one name");
  graph->setOwner(this);
  graphs_.push_back(std::move(graph));
  return graphs_.back().get();
}

std::string Module::addConstant(llvm::StringRef hint, std::shared_ptr<const TensorData> data,
                                bool isConverted) {
  // The suffixes in use; 0 stands for the hint itself.
  llvm::DenseSet<unsigned> used;
  for (const Parameter &parameter : parameters_) {
    llvm::StringRef rest = parameter.name;
    unsigned suffix = 0;
    if (rest.consume_front(hint) &&
        (rest.empty() ||
         (rest.consume_front("_") && !rest.starts_with("0") && !rest.getAsInteger(10, suffix))))
      used.insert(suffix);
  }
  unsigned suffix = 0;
  while (used.contains(suffix))
    ++suffix;
  std::string name = suffix == 0 ? hint.str() : (hint + "_" + llvm::Twine(suffix)).str();
  TensorType type = data->type();
  addParameter({.name = name,
                .kind = Parameter::Kind::Constant,
                .type = std::move(type),
                .data = std::move(data),
                .isConverted = isConverted});
  return name;
}

void Module::removeGraph(llvm::StringRef name) {
  llvm::erase_if(graphs_, [&](auto &graph) { return graph->name() == name; });
}

Module *Module::findSubmodule(llvm::StringRef name) const {
  for (auto &module : submodules_)
    if (module->name() == name)
      return module.get();
  return nullptr;
}

Graph *Module::findGraph(llvm::StringRef name) const {
  for (auto &graph : graphs_)
    if (graph->name() == name)
      return graph.get();
  return nullptr;
}

const Parameter *Module::findParameter(llvm::StringRef path) const {
  auto [module, name] = resolve(path);
  if (module)
    for (const Parameter &parameter : module->parameters_)
      if (parameter.name == name)
        return &parameter;
  return nullptr;
}

std::pair<Module *, llvm::StringRef> Module::resolve(llvm::StringRef target) const {
  auto *module = const_cast<Module *>(this);
  while (module) {
    auto [head, rest] = target.split('.');
    if (rest.empty())
      return {module, head};
    module = module->findSubmodule(head);
    target = rest;
  }
  return {nullptr, target};
}

} // namespace cgc::ir
