// Preconditions: one walk over the graph for each.
#include "passes/preconditions.h"

#include "ir/op_def.h"

namespace cgc::passes {
namespace {

/// Returns the error for a pipeline that lacks the pass `first` or runs it too late.
Status refused(const std::string &what, const std::string &first) {
  return Status(Code::Usage, what + "; run the pass '" + first + "' first");
}

} // namespace

Status requireInlined(const ir::Graph &graph) {
  for (const ir::Node &node : graph)
    if (node.kind() == ir::NodeKind::CallModule)
      return refused("a call of '" + node.target() + "' is left", "inline");
  return Status::ok();
}

Status requireTypes(const ir::Graph &graph) {
  for (const ir::Node &node : graph)
    for (const ir::Value &value : node.results())
      if (!value.isTensor())
        return refused("%" + value.name() + " has no tensor type", "specialize");
  return Status::ok();
}

Status requireFunctional(const ir::Graph &graph) {
  CGC_TRY(requireInlined(graph));
  for (const ir::Node &node : graph)
    if (node.kind() != ir::NodeKind::CallFunction)
      continue;
    else if (node.isInPlace())
      return refused("%" + node.result()->name() + " is computed in place", "canonicalize");
    else if (!ir::hasTrait(node.op(), ir::kPure) && !ir::hasTrait(node.op(), ir::kOpaque))
      return refused("'" + ir::opName(node.op()).str() + "' is left", "specialize");
  return Status::ok();
}

} // namespace cgc::passes
