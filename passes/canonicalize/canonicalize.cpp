// CanonicalizePass: functionalizes in-place ops, then runs all patterns to a fixed point.
#include "passes/canonicalize/canonicalize.h"

#include "passes/canonicalize/in_place.h"
#include "passes/canonicalize/patterns.h"
#include "passes/canonicalize/wide_values.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

constexpr Pattern kCanonicalizePatterns[] = {
    CGC_PATTERN(dropEqualCast), // The first, which `casts=keep` leaves out.
    CGC_PATTERN(dropIdentity),  CGC_PATTERN(castBeforeExpand), CGC_PATTERN(normalizeCopy),
    CGC_PATTERN(decomposeAten), CGC_PATTERN(normalizeViews),   CGC_PATTERN(dropCopy),
    CGC_PATTERN(mergeLinears),  CGC_PATTERN(unflattenLinear),  CGC_PATTERN(sinkView),
    CGC_PATTERN(sinkPermute),   CGC_PATTERN(foldQueryScale),   CGC_PATTERN(multiplyOuterProduct),
};

/// Drops the casts to the dtype of their argument that no conversion to 16 bits needs.
bool dropUnneededCasts(ir::Graph &graph) {
  const WideValues wide(graph);
  ir::GraphRewriter rewriter(graph);
  for (ir::Node &node : llvm::make_early_inc_range(graph))
    if (auto to = ir::ToOp::of(node); to && isEqualCast(node))
      if (!wide.contains(node.result()) || wide.contains(to->self()))
        replaceAllUsesWith(rewriter, node.result(), to->self());
  return rewriter.changed();
}

} // namespace

Result<CanonicalizePass> CanonicalizePass::create(PassOptions &options) {
  CGC_ASSIGN_OR_RETURN(const auto limit, options.takeNumber("max-rewrites"));
  CGC_ASSIGN_OR_RETURN(const auto casts, options.takeOneOf("casts", {"keep"}));
  return CanonicalizePass{.maxRewrites = limit.value_or(kNoLimit), .keepsCasts = casts.has_value()};
}

Result<Changed> CanonicalizePass::run(ir::Graph &graph, PassContext &context) const {
  CGC_TRY(requireTypes(graph));
  ir::Diagnostics diagnostics;
  bool changed = functionalize(graph, diagnostics);
  if (diagnostics.hasErrors()) {
    if (context.diagnostics)
      for (const ir::Diagnostic &error : diagnostics.errors())
        context.diagnostics->error(error);
    return diagnostics.toStatus(Code::Unsupported);
  }
  if (keepsCasts)
    changed |= dropUnneededCasts(graph);
  CGC_ASSIGN_OR_RETURN(Changed rewrote,
                       runPatterns(graph,
                                   llvm::ArrayRef(kCanonicalizePatterns).drop_front(keepsCasts),
                                   context, maxRewrites));
  return changed ? Changed::Yes : rewrote;
}

CGC_DEFINE_PASS(CanonicalizePass)

} // namespace cgc::passes
