// DcePass: one backward walk over the graph.
#include "passes/canonicalize/dce.h"

#include "ir/rewriter.h"
#include "passes/manager/registered_pass.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

bool isDead(const ir::Node &node) {
  const bool removable =
      node.kind() == ir::NodeKind::GetAttr ||
      (node.kind() == ir::NodeKind::CallFunction && !node.isInPlace() &&
       (ir::hasTrait(node.op(), ir::kPure) || ir::hasTrait(node.op(), ir::kOpaque)));
  return removable &&
         llvm::none_of(node.results(), [](const ir::Value &result) { return result.hasUsers(); });
}

} // namespace

Result<Changed> DcePass::run(ir::Graph &graph, PassContext &) const {
  ir::GraphRewriter rewriter(graph);
  // The users of a node come after it, so they are gone when the walk reaches it.
  for (auto it = graph.end(); it != graph.begin();) {
    ir::Node &node = *--it;
    if (!isDead(node))
      continue;
    ++it;
    rewriter.erase(&node);
  }
  return rewriter.changed() ? Changed::Yes : Changed::No;
}

CGC_DEFINE_PASS(DcePass)

} // namespace cgc::passes
