// Positions: helpers of select-tokens and select-embedding.
#pragma once

#include "passes/match.h"

namespace cgc::passes {

/// The result of `op` [B, T, E] plus positions that are equal for each batch: [T, E] or [1, T, E].
struct AddedPositions {
  ir::Node *op;
  ir::Value *positions;
};
/// Matches `node` as such a sum, in either order, for any B. Returns nullopt if the result of `op`
/// has other users.
std::optional<AddedPositions> addedPositions(const ir::Node &node, ir::OpKind op,
                                             const ir::UseMap &uses);

/// Returns `positions` as [T, E]. Inserts a view before `root` if necessary.
ir::Value *asMatrix(ir::Value *positions, ir::Node &root, ir::GraphRewriter &rewriter);

} // namespace cgc::passes
