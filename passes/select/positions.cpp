// Positions: matches a sum of tokens and positions.
#include "passes/select/positions.h"

namespace cgc::passes {

std::optional<AddedPositions> addedPositions(const ir::Node &node, ir::OpKind op,
                                             const PatternRewriter &rewriter) {
  const ir::TensorType &type = node.result()->tensor();
  const char *reason = nullptr; // Of the last operand that `op` computes.
  for (const auto &[tokens, positions] : operandsOfSum(node)) {
    if (!tokens->node()->is(op))
      continue;
    llvm::ArrayRef<int64_t> sizes = positions->tensor().sizes;
    if (sizes.size() == 3 && sizes.front() == 1)
      sizes = sizes.drop_front();
    if (!tokens->hasOneUse())
      reason = "the rows without positions have another use";
    else if (type.rank() != 3 || tokens->tensor().sizes != type.sizes ||
             sizes != llvm::ArrayRef(type.sizes).drop_front())
      reason = "the sum is not one of [B, T, E] and positions [T, E] or [1, T, E]";
    else if (tokens->tensor().dtype != type.dtype || positions->tensor().dtype != type.dtype)
      reason = "rows and positions have different dtypes";
    else
      return AddedPositions{tokens, positions};
  }
  if (reason)
    rewriter.notifyMatchFailure(node, reason);
  return std::nullopt;
}

ir::Value *asMatrix(ir::Value *positions, ir::Node &root, ir::GraphRewriter &rewriter) {
  if (positions->tensor().rank() == 2)
    return positions;
  return rewriter.create(ir::OpKind::Select, {positions, 0, 0}, root, &root)->result();
}

} // namespace cgc::passes
