// OpSubstitutionPass: the walk over the graph.
#include "passes/substitution/op_substitution.h"

#include "ir/text/text.h"
#include "passes/canonicalize/dce.h"
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/preconditions.h"
#include "passes/substitution/op_pattern.h"

namespace cgc::passes {
namespace {

Status checkType(const ir::Value &replacement, const ir::Value &original) {
  const ir::TensorType &now = replacement.tensor(), &before = original.tensor();
  if (now.dtype == before.dtype && now.sizes == before.sizes)
    return Status::ok();
  return Status(Code::Failed, "gives " + toString(now) + ", and what it replaces gives " +
                                  toString(before) + "; make it give the same");
}

/// Replaces the match at `root`, if there is one. Returns true if it did.
Result<bool> replaceAt(const OpPattern &pattern, ir::Node &root, PatternRewriter rewriter) {
  std::optional<OpMatch> match = pattern.match(root, rewriter);
  if (!match)
    return false;
  CGC_ASSIGN_OR_RETURN(ir::Value * replacement, pattern.build(*match, rewriter));
  if (!replacement) {
    if (rewriter.changed())
      return Status(Code::Failed, "changed the graph and says that it did not");
    return rewriter.notifyMatchFailure(root, "the substitution's function declines the match");
  }
  CGC_TRY(checkType(*replacement, *root.result()));
  rewriter.replaceAllUsesWith(root.result(), replacement);
  return true;
}

Result<Changed> apply(const OpSubstitution &substitution, ir::Graph &graph,
                      const MatchListener *listener) {
  CGC_ASSIGN_OR_RETURN(const OpPattern pattern, OpPattern::create(substitution));
  std::vector<ir::Node *> nodes;
  for (ir::Node &node : graph)
    nodes.push_back(&node);
  bool changed = false;
  for (ir::Node *node : nodes) {
    Result<bool> replaced =
        replaceAt(pattern, *node, PatternRewriter(graph, substitution.name, listener));
    if (!replaced)
      return replaced.status().withContext("substitution '" + substitution.name + "' at " +
                                           ir::toString(*node));
    changed |= *replaced;
  }
  if (!changed)
    return Changed::No;
  if (ir::Node *refused = ir::reinferTypes(graph))
    return Status(Code::Failed, "after substitution '" + substitution.name +
                                    "' an op refuses: " + ir::toString(*refused));
  return Changed::Yes;
}

} // namespace

Result<Changed> OpSubstitutionPass::run(ir::Graph &graph, PassContext &context) const {
  if (!context.substitutions || context.substitutions->ops.empty())
    return Changed::No;
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  Changed changed = Changed::No;
  for (const OpSubstitution &substitution : context.substitutions->ops) {
    CGC_ASSIGN_OR_RETURN(Changed one, apply(substitution, graph, context.matchFailed));
    if (one == Changed::No)
      continue;
    changed = Changed::Yes;
    CGC_TRY(DcePass().run(graph, context).status());
  }
  return changed;
}

CGC_DEFINE_PASS(OpSubstitutionPass)

} // namespace cgc::passes
