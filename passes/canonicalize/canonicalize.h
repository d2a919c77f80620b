// CanonicalizePass: rewrites equivalent computations to one canonical form.
#pragma once

#include "passes/pass.h"
#include "passes/run_patterns.h"

namespace cgc::passes {

/// Rewrites each idiom to one form, so that later passes see few cases; patterns.h lists the
/// patterns. In-place ops become functional first, or are refused with Unsupported where the
/// mutation is observable. The patterns then run to a fixed point. Requires a specialized graph.
struct CanonicalizePass {
  static constexpr const char *name = "canonicalize";
  static constexpr bool explains = true;
  static constexpr bool isRequired = true; ///< No later pass accepts in-place ops.
  /// `max-rewrites=N`: stops after N rewrites of each graph, to bisect a wrong rewrite.
  /// `casts=keep`: for `precision` after it, keeps a cast to the dtype that its argument has where
  /// that pass needs it (wide_values.h).
  static Result<CanonicalizePass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  uint64_t maxRewrites = kNoLimit;
  bool keepsCasts = false;
};

} // namespace cgc::passes
