// tie-states: one state for a tensor that the model has under several names.
#include "ir/rewriter.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"

#include "llvm/ADT/DenseMap.h"

namespace cgc::passes {

/// Makes all reads of states with the same memory reads of the first of them, in the order of the
/// module tree: TorchScript keeps a tied parameter as one tensor with several names.
struct TieStatesPass {
  static constexpr const char *name = "tie-states";
  static constexpr bool isRequired = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

namespace {

using Paths = llvm::DenseMap<const ir::TensorData *, std::string>; // Looked up, never iterated.

void addPaths(const ir::Module &module, const std::string &prefix, Paths &paths) {
  for (const ir::Parameter &parameter : module.parameters())
    if (parameter.kind == ir::Parameter::Kind::State && parameter.data)
      paths.try_emplace(parameter.data.get(), prefix + parameter.name);
  for (const auto &submodule : module.submodules())
    addPaths(*submodule, prefix + submodule->name() + ".", paths);
}

} // namespace

Result<Changed> TieStatesPass::run(ir::Graph &graph, PassContext &) const {
  if (!graph.owner())
    return Changed::No;
  Paths paths;
  addPaths(*graph.owner(), "", paths);
  Changed changed = Changed::No;
  for (ir::Node &node : graph) {
    if (!readsState(node))
      continue;
    const ir::Parameter &state = *graph.owner()->findParameter(node.target());
    const std::string first = paths.lookup(state.data.get());
    if (!state.data || first == node.target())
      continue;
    node.setTarget(first);
    changed = Changed::Yes;
  }
  return changed;
}

CGC_DEFINE_PASS(TieStatesPass)

} // namespace cgc::passes
