// CanonicalizePass: in-place ops first, then all patterns until nothing changes.
#include "passes/canonicalize.h"

#include "passes/dce.h"
#include "passes/in_place.h"
#include "passes/patterns/patterns.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

constexpr Pattern kPatterns[] = {
    dropIdentity, castBeforeExpand, normalizeCopy,   expandNativeMha, normalizeViews,
    dropCopy,     mergeLinears,     unflattenLinear, sinkPermute,     foldQueryScale,
};

/// Each pattern makes something fewer or simpler, so this ends soon; the bound is against our own
/// bugs.
constexpr unsigned kMaxRounds = 64;

/// Offers each node in use to each pattern, once. Returns whether one rewrote something.
bool runRound(ir::Graph &graph) {
  std::vector<ir::Node *> nodes;
  for (ir::Node &node : graph)
    if (node.kind() == ir::NodeKind::CallFunction)
      nodes.push_back(&node);
  bool changed = false;
  std::optional<ir::UseMap> uses(graph);
  for (ir::Node *node : nodes)
    for (Pattern pattern : kPatterns) {
      if (llvm::all_of(node->results(), [&](auto &r) { return uses->users(&r).empty(); }))
        break; // Replaced in this round.
      ir::GraphRewriter rewriter(graph);
      if (pattern(*node, *uses, rewriter)) {
        changed = true;
        uses.emplace(graph);
      }
    }
  return changed;
}

} // namespace

Result<Changed> CanonicalizePass::run(ir::Graph &graph, PassContext &context) const {
  for (const ir::Node &node : graph)
    for (const ir::Value &value : node.results())
      if (!value.isTensor())
        return Status(Code::Failed,
                      "%" + value.name() + " has no tensor type; run the pass 'specialize' first");
  ir::Diagnostics diagnostics;
  bool changed = functionalize(graph, diagnostics);
  if (diagnostics.hasErrors()) {
    if (context.diagnostics)
      for (const ir::Diagnostic &error : diagnostics.errors())
        context.diagnostics->error(error);
    return diagnostics.toStatus(Code::Unsupported);
  }
  for (unsigned round = 0; round < kMaxRounds; ++round) {
    CGC_ASSIGN_OR_RETURN(Changed swept, DcePass().run(graph, context));
    bool rewrote = runRound(graph);
    changed |= rewrote || swept == Changed::Yes;
    if (!rewrote)
      return changed ? Changed::Yes : Changed::No;
  }
  return Status(Code::Failed, "the patterns do not settle on @" + graph.name() + ": a bug of cgc");
}

} // namespace cgc::passes
