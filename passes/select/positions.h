// Positions: helpers of select-tokens and select-embedding.
#pragma once

#include "passes/match.h"
#include "passes/pattern.h"

namespace cgc::passes {

/// The result [B, T, E] of an op plus positions that are equal for each batch: [T, E] or [1, T, E].
struct AddedPositions {
  ir::Value *tokens, *positions;
};
/// Matches `node` as such a sum with the result of `op`, in either order, for any B. Returns
/// nullopt, and says why, if the sum has another form or the result of `op` another use.
std::optional<AddedPositions> addedPositions(const ir::Node &node, ir::OpKind op,
                                             const PatternRewriter &rewriter);

/// Returns `positions` as [T, E]. Inserts a view before `root` if necessary.
ir::Value *asMatrix(ir::Value *positions, ir::Node &root, ir::GraphRewriter &rewriter);

} // namespace cgc::passes
