// FoldPass: constant folding.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Evaluates nodes that depend only on constants with context.evaluator, and cgc.center_rows with
/// centerRows. The results become constants of the root module, shared where equal. A node is
/// folded if it has memory of its own (views cost nothing and stay) and if its results are at most
/// an eighth larger than the constants that it reads, or at most `limit` bytes, or a mask of
/// cgc.attention of at most 16 MiB: a cast to a smaller type or a weight with a few more columns is
/// folded, an enlarged weight is not. Does
/// nothing without an evaluator or where parameters have no data. Requires a graph without in-place
/// ops and calls.
struct FoldPass {
  static constexpr const char *name = "fold";
  /// `limit=BYTES`: results of at most this size are folded whatever they depend on.
  static Result<FoldPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  uint64_t limit = 64 * 1024;
};

} // namespace cgc::passes
