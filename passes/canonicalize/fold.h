// FoldPass: computes constants at compile time.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Computes with context.evaluator, cgc.center_rows itself, what depends on constants alone; the
/// results become constants of the root module, shared where equal. A node is folded if it has
/// memory of its own (views are free and stay), and if its results are at most an eighth larger
/// than the constants that it reads, or at most `limit` bytes: a mask, a cast to a smaller type or
/// a weight with a few more columns folds, an enlarged weight does not. Does nothing without an
/// evaluator or where parameters have no data. Wants a graph without in-place ops and calls.
struct FoldPass {
  static constexpr const char *name = "fold";
  /// `limit=BYTES`: what is no larger folds whatever it comes from.
  static Result<FoldPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  uint64_t limit = 64 * 1024;
};

} // namespace cgc::passes
