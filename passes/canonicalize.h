// CanonicalizePass: brings equal computations into one form.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// One form for each idea, so that later stages see few cases (patterns/patterns.h lists them).
/// In-place ops become functional first, or are refused with Unsupported where the mutation can be
/// seen; then the patterns of passes/patterns/ run to a fixed point. Wants a specialised graph.
struct CanonicalizePass {
  static constexpr const char *name = "canonicalize";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

} // namespace cgc::passes
