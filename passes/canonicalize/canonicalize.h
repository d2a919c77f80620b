// CanonicalizePass: brings equal computations into one form.
#pragma once

#include "passes/canonicalize/run_patterns.h"
#include "passes/pass.h"

namespace cgc::passes {

/// One form for each idea, so that later stages see few cases (patterns/patterns.h lists them).
/// In-place ops become functional first, or are refused with Unsupported where the mutation can be
/// seen; then the patterns of patterns.h run to a fixed point. Wants a specialized graph.
struct CanonicalizePass {
  static constexpr const char *name = "canonicalize";
  static constexpr bool isRequired = true; ///< Nothing after it takes in-place ops.
  /// `max-rewrites=N`: stops after so many rewrites of each graph, to find the wrong one.
  static Result<CanonicalizePass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  uint64_t maxRewrites = kNoLimit;
};

} // namespace cgc::passes
