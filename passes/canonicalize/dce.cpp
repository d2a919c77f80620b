// DcePass: one backward walk over the graph.
#include "passes/canonicalize/dce.h"

#include "ir/rewriter.h"
#include "passes/manager/registered_pass.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

Result<Changed> DcePass::run(ir::Graph &graph, PassContext &) const {
  llvm::DenseSet<const ir::Node *> used; // Looked up, never iterated.
  std::vector<ir::Node *> dead;
  for (ir::Node &node : llvm::reverse(graph)) {
    bool removable = node.kind() == ir::NodeKind::GetAttr ||
                     (node.kind() == ir::NodeKind::CallFunction && !node.isInPlace() &&
                      ir::hasTrait(node.op(), ir::kPure));
    if (removable && !used.contains(&node))
      dead.push_back(&node);
    else
      node.forEachInput([&](ir::Value *value) { used.insert(value->node()); });
  }
  ir::GraphRewriter rewriter(graph);
  for (ir::Node *node : dead)
    rewriter.erase(node);
  return dead.empty() ? Changed::No : Changed::Yes;
}

CGC_DEFINE_PASS(DcePass)

} // namespace cgc::passes
