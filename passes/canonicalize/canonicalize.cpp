// CanonicalizePass: functionalizes in-place ops, then runs all patterns to a fixed point.
#include "passes/canonicalize/canonicalize.h"

#include "passes/canonicalize/in_place.h"
#include "passes/canonicalize/patterns.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"

namespace cgc::passes {
namespace {

constexpr Pattern kPatterns[] = {
    {"dropIdentity", dropIdentity},
    {"castBeforeExpand", castBeforeExpand},
    {"normalizeCopy", normalizeCopy},
    {"expandNativeMha", expandNativeMha},
    {"normalizeViews", normalizeViews},
    {"dropCopy", dropCopy},
    {"mergeLinears", mergeLinears},
    {"unflattenLinear", unflattenLinear},
    {"sinkView", sinkView},
    {"sinkPermute", sinkPermute},
    {"foldQueryScale", foldQueryScale},
    {"expandEinsum", expandEinsum},
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
