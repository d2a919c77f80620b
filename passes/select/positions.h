// Positions: what select-tokens and select-embedding share.
#pragma once

#include "passes/match.h"

namespace cgc::passes {

/// `op` [B, T, E] plus positions that are the same for each batch: [T, E] or [1, T, E].
struct AddedPositions {
  ir::Node *op;
  ir::Value *positions;
};
/// `node` as such a sum, in either order, if nothing else reads the result of the `op`; B > 1 or
/// not.
std::optional<AddedPositions> addedPositions(const ir::Node &node, ir::OpKind op,
                                             const ir::UseMap &uses);

/// `positions` as [T, E], by a view before `root` if need be.
ir::Value *asMatrix(ir::Value *positions, ir::Node &root, ir::GraphRewriter &rewriter);

} // namespace cgc::passes
