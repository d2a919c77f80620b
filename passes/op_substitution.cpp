// OpSubstitutionPass: the walk over the graph.
#include "passes/op_substitution.h"

#include "ir/text.h"

namespace cgc::passes {
namespace {

ir::Node *findNode(ir::Graph &graph, llvm::StringRef result) {
  for (ir::Node &node : graph)
    if (node.numResults() && node.result()->name() == result)
      return &node;
  return nullptr;
}

Result<Changed> apply(const OpSubstitution &substitution, ir::Graph &graph) {
  // A rewrite may erase any node that the walk has not reached, so the walk keeps names, not
  // pointers.
  std::vector<std::string> names;
  for (ir::Node &node : graph)
    if (node.kind() == ir::NodeKind::CallFunction && node.numResults())
      names.push_back(node.result()->name());
  Changed changed = Changed::No;
  for (const std::string &name : names) {
    ir::Node *node = findNode(graph, name);
    if (!node)
      continue;
    ir::GraphRewriter rewriter(graph);
    auto where = [&] { return "substitution '" + substitution.name + "' at %" + name; };
    Result<bool> rewritten = substitution.matchAndRewrite(*node, rewriter);
    if (!rewritten)
      return rewritten.status().withContext(where());
    if (!*rewritten && rewriter.changed())
      return Status(Code::Failed, where() + " changed the graph and says that it did not");
    if (*rewritten)
      changed = Changed::Yes;
  }
  if (changed == Changed::Yes)
    if (ir::Node *refused = ir::reinferTypes(graph))
      return Status(Code::Failed, "after substitution '" + substitution.name +
                                      "' an op refuses: " + ir::toString(*refused));
  return changed;
}

} // namespace

Result<Changed> OpSubstitutionPass::run(ir::Graph &graph, PassContext &context) const {
  Changed changed = Changed::No;
  if (context.substitutions)
    for (const OpSubstitution &substitution : context.substitutions->ops) {
      CGC_ASSIGN_OR_RETURN(Changed one, apply(substitution, graph));
      if (one == Changed::Yes)
        changed = Changed::Yes;
    }
  return changed;
}

} // namespace cgc::passes
