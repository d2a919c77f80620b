// ModuleTree: modules by their paths.
#include "frontend/exported/module_tree.h"

#include <tuple>

namespace cgc::exported {

constexpr unsigned kMaxModuleDepth = 64;
/// The class of a module that only holds others, as a ModuleList: no node names it.
constexpr const char *kUnknownClass = "Module";

void ModuleTree::add(const Program &program) {
  for (const Node &node : program.nodes)
    for (const ModuleCall &call : node.modules)
      classes_.try_emplace(call.path, call.className);
  if (!root_) {
    const auto root = classes_.find("");
    root_ = std::make_unique<ir::Module>("model",
                                         root == classes_.end() ? kUnknownClass : root->second);
  }
  for (const Node &node : program.nodes)
    for (const ModuleCall &call : node.modules)
      at(call.path);
}

ir::Module *ModuleTree::at(llvm::StringRef path) {
  ir::Module *module = root_.get();
  llvm::StringRef rest = path;
  for (unsigned depth = 0; !rest.empty(); ++depth) {
    if (depth == kMaxModuleDepth)
      return nullptr;
    llvm::StringRef name;
    std::tie(name, rest) = rest.split('.');
    ir::Module *child = module->findSubmodule(name);
    if (!child) {
      const llvm::StringRef below = path.drop_back(rest.empty() ? 0 : rest.size() + 1);
      const auto found = classes_.find(below);
      child = module->addSubmodule(std::make_unique<ir::Module>(
          name.str(), found == classes_.end() ? kUnknownClass : found->second));
    }
    module = child;
  }
  return module;
}

} // namespace cgc::exported
