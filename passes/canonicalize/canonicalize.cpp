// CanonicalizePass: functionalizes in-place ops, then runs all patterns to a fixed point.
#include "passes/canonicalize/canonicalize.h"

#include "passes/canonicalize/in_place.h"
#include "passes/canonicalize/patterns.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"

namespace cgc::passes {
namespace {

constexpr Pattern kPatterns[] = {
    CGC_PATTERN(dropIdentity),    CGC_PATTERN(castBeforeExpand), CGC_PATTERN(normalizeCopy),
    CGC_PATTERN(expandNativeMha), CGC_PATTERN(normalizeViews),   CGC_PATTERN(dropCopy),
    CGC_PATTERN(mergeLinears),    CGC_PATTERN(unflattenLinear),  CGC_PATTERN(sinkView),
    CGC_PATTERN(sinkPermute),     CGC_PATTERN(foldQueryScale),   CGC_PATTERN(expandEinsum),
};

} // namespace

Result<CanonicalizePass> CanonicalizePass::create(PassOptions &options) {
  CGC_ASSIGN_OR_RETURN(const auto limit, options.takeNumber("max-rewrites"));
  return limit ? CanonicalizePass{.maxRewrites = *limit} : CanonicalizePass();
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
  CGC_ASSIGN_OR_RETURN(Changed rewrote, runPatterns(graph, kPatterns, context, maxRewrites));
  return changed ? Changed::Yes : rewrote;
}

CGC_DEFINE_PASS(CanonicalizePass)

} // namespace cgc::passes
