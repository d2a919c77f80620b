// importTorchScript: imports the module tree with its parameters and attributes, then every
// method's graph.
#include "frontend/frontend.h"

#include "frontend/graph_import.h"
#include "frontend/guard.h"
#include "frontend/load.h"

#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/api/function_impl.h>

#include <set>

namespace cgc::frontend {
namespace {

/// Bounds on the module tree, since a hostile file could nest or share modules without limit.
constexpr unsigned kMaxModuleDepth = 64;
constexpr size_t kMaxModules = 100000;

class ModuleImporter {
public:
  /// `names` are the output names of the methods of `source` itself.
  ModuleImporter(OutputNames names, ImportFor purpose) : purpose_(purpose) {
    state_.outputNames = std::move(names);
    state_.hasGradients = purpose == ImportFor::Training;
  }

  Result<std::unique_ptr<ir::Module>> import(const torch::jit::Module &source) {
    CGC_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> root, importTree(source, "model", 0));
    for (const auto &[from, to] : pairs_)
      importGraphs(from, *to);
    return root;
  }

private:
  Result<std::unique_ptr<ir::Module>> importTree(const torch::jit::Module &source, std::string name,
                                                 unsigned depth);
  void importAttribute(const c10::ClassType &type, size_t slot, const c10::IValue &value,
                       ir::Module &module);
  void importGraphs(const torch::jit::Module &source, ir::Module &module);

  ImportFor purpose_;
  ImportState state_;
  std::vector<std::pair<torch::jit::Module, ir::Module *>> pairs_;
};

Result<std::unique_ptr<ir::Module>> ModuleImporter::importTree(const torch::jit::Module &source,
                                                               std::string name, unsigned depth) {
  if (depth > kMaxModuleDepth || pairs_.size() >= kMaxModules)
    return Status(Code::InvalidFile, "the module tree is too deep or too large");
  const c10::ClassTypePtr type = source.type();
  auto module = std::make_unique<ir::Module>(std::move(name), type->name().value().name());
  pairs_.emplace_back(source, module.get());
  for (size_t slot = 0; slot < type->numAttributes(); ++slot) {
    const c10::IValue &value = source._ivalue()->getSlot(slot);
    if (value.isModule()) {
      CGC_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> child,
                           importTree(value.toModule(), type->getAttributeName(slot), depth + 1));
      module->addSubmodule(std::move(child));
    } else {
      importAttribute(*type, slot, value, *module);
    }
  }
  for (size_t i = 0; i < type->numConstants(); ++i)
    if (std::optional<ir::Arg> constant = toConstant(type->getConstant(i)))
      module->addAttribute({type->getConstantName(i), std::move(*constant)});
  return module;
}

/// Imports one attribute. A type that cgc cannot hold is skipped here and refused where a graph
/// reads it.
void ModuleImporter::importAttribute(const c10::ClassType &type, size_t slot,
                                     const c10::IValue &value, ir::Module &module) {
  const std::string &name = type.getAttributeName(slot);
  if (value.isTensor()) {
    if (!whyUnsupported(value.toTensor()).empty())
      return;
    auto data = state_.tensors.get(value.toTensor());
    ir::TensorType tensorType = data->type();
    using Kind = ir::Parameter::Kind;
    const bool isTrained = value.toTensor().requires_grad(), isParameter = type.is_parameter(slot);
    // A frozen parameter is a state, too, so that checkpoints have it.
    const bool isState = purpose_ == ImportFor::Training && (isTrained || isParameter);
    const Kind kind = isState ? Kind::State : isParameter ? Kind::Parameter : Kind::Buffer;
    module.addParameter({name, kind, std::move(tensorType), std::move(data),
                         isTrained ? StateRole::Parameter : StateRole::Buffer});
  } else if (std::optional<ir::Arg> constant = toConstant(value)) {
    // The tracer's own bookkeeping attribute carries no information about the model.
    if (name != "_is_full_backward_hook")
      module.addAttribute({name, std::move(*constant)});
  }
}

/// Returns the methods of `source` that its own methods call.
std::set<std::string> ownCallees(const torch::jit::Module &source) {
  std::set<std::string> callees;
  for (const torch::jit::Method &method : source.get_methods()) {
    const std::shared_ptr<torch::jit::Graph> graph = method.graph();
    for (const torch::jit::Use &use : graph->inputs()[0]->uses())
      if (use.user->kind() == c10::prim::CallMethod && use.offset == 0)
        callees.insert(use.user->s(c10::attr::name));
  }
  return callees;
}

void ModuleImporter::importGraphs(const torch::jit::Module &source, ir::Module &module) {
  const std::set<std::string> callees = ownCallees(source);
  for (const torch::jit::Method &method : source.get_methods()) {
    ir::Graph *graph = module.addGraph(std::make_unique<ir::Graph>(method.name()));
    bool isEntry = module.path().empty() && !callees.contains(method.name());
    GraphImporter(state_, source, module, *graph)
        .import(*method.graph(), method.function().getSchema(),
                isEntry ? Role::Entry : Role::Callee);
  }
}

} // namespace

Result<std::unique_ptr<ir::Module>> importTorchScript(const std::string &path, ImportFor purpose) {
  CGC_ASSIGN_OR_RETURN(torch::jit::Module source, loadTorchScript(path));
  std::unique_ptr<ir::Module> module;
  Status status = guarded(Code::InvalidFile, [&]() -> Status {
    CGC_ASSIGN_OR_RETURN(OutputNames names, readOutputNames(path, source));
    CGC_ASSIGN_OR_RETURN(module, ModuleImporter(std::move(names), purpose).import(source));
    return Status::ok();
  });
  if (!status.isOk())
    return status.withContext(path);
  return module;
}

} // namespace cgc::frontend
