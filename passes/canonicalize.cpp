// CanonicalizePass: in-place ops first, then all patterns until nothing changes.
#include "passes/canonicalize.h"

#include "passes/in_place.h"
#include "passes/patterns/run.h"

namespace cgc::passes {
namespace {

constexpr Pattern kPatterns[] = {
    dropIdentity, castBeforeExpand, normalizeCopy, expandNativeMha, normalizeViews, dropCopy,
    mergeLinears, unflattenLinear,  sinkView,      sinkPermute,     foldQueryScale,
};

} // namespace

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
  CGC_ASSIGN_OR_RETURN(Changed rewrote, runPatterns(graph, kPatterns, context));
  return changed ? Changed::Yes : rewrote;
}

} // namespace cgc::passes
