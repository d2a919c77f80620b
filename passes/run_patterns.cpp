// runPatterns: rounds over the nodes, with dead code elimination before each.
#include "passes/run_patterns.h"

#include "passes/canonicalize/dce.h"
#include "passes/preconditions.h"
#include "runtime/base/check.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

/// Each pattern makes something fewer or simpler, so a fixed point is reached soon; the bound
/// catches bugs.
constexpr unsigned kMaxRounds = 64;

/// Offers each node in use to each pattern, once. Returns true if a pattern rewrote something, and
/// decrements `rewritesLeft` for each rewrite. Sends match failures to `listener`, unless it is
/// null.
bool runRound(ir::Graph &graph, llvm::ArrayRef<Pattern> patterns, uint64_t &rewritesLeft,
              const MatchListener *listener) {
  std::vector<ir::Node *> nodes;
  for (ir::Node &node : graph)
    if (node.kind() == ir::NodeKind::CallFunction)
      nodes.push_back(&node);
  bool changed = false;
  for (ir::Node *node : nodes)
    for (const Pattern &pattern : patterns) {
      if (llvm::none_of(node->results(), [](const ir::Value &r) { return r.hasUsers(); }))
        break; // Replaced in this round.
      if (rewritesLeft == 0)
        return changed;
      PatternRewriter rewriter(graph, pattern.name, listener);
      if (pattern.rewrite(*node, rewriter)) {
        changed = true;
        --rewritesLeft;
      }
    }
  return changed;
}

} // namespace

Result<Changed> runPatterns(ir::Graph &graph, llvm::ArrayRef<Pattern> patterns,
                            PassContext &context, uint64_t maxRewrites) {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  bool changed = false;
  for (unsigned round = 0; round < kMaxRounds; ++round) {
    CGC_ASSIGN_OR_RETURN(Changed swept, DcePass().run(graph, context));
    bool rewrote = runRound(graph, patterns, maxRewrites, /*listener=*/nullptr);
    changed |= rewrote || swept == Changed::Yes;
    if (rewrote)
      continue;
    if (context.matchFailed) { // What does not match at the fixed point stays: one round asks why.
      const bool again = runRound(graph, patterns, maxRewrites, context.matchFailed);
      CGC_CHECK(!again && "a pattern decides otherwise the second time");
    }
    return changed ? Changed::Yes : Changed::No;
  }
  return Status(Code::Failed, "the patterns do not settle on @" + graph.name() + ": a bug of cgc");
}

} // namespace cgc::passes
