// requestRowStatistics(): row statistics as a result of the op that computes a tensor.
#pragma once

#include "passes/match.h"

namespace cgc::passes {

/// Returns the row statistics of `x`, f32 [R, ceil(C / 64), 2] (ir/ops/row_statistics_rules.h),
/// from the op that computes x: creates that op anew with row statistics as its last result, unless
/// it has them, and replaces it. x may be a view with the same rows. Returns null, with the graph
/// unchanged, if no op that can have row statistics computes x.
ir::Value *requestRowStatistics(ir::Value *x, ir::GraphRewriter &rewriter);

} // namespace cgc::passes
