// Positions: matches a sum of tokens and positions.
#include "passes/select/positions.h"

namespace cgc::passes {

std::optional<AddedPositions> addedPositions(const ir::Node &node, ir::OpKind op,
                                             const ir::UseMap &uses) {
  if (!node.is(ir::OpKind::Add) || node.arg("alpha").asNumber() != 1.0)
    return std::nullopt;
  const ir::TensorType &type = node.result()->tensor();
  for (unsigned i : {0u, 1u}) {
    const ir::Arg &tokens = node.arg(i), &positions = node.arg(1 - i);
    if (!tokens.isValue() || !positions.isValue() || tokens == positions ||
        !definingOp(tokens.value(), op) || !uses.hasOneUser(tokens.value()))
      continue;
    llvm::ArrayRef<int64_t> sizes = positions.value()->tensor().sizes;
    if (sizes.size() == 3 && sizes.front() == 1)
      sizes = sizes.drop_front();
    if (type.rank() == 3 && tokens.value()->tensor().sizes == type.sizes &&
        sizes == llvm::ArrayRef(type.sizes).drop_front() &&
        tokens.value()->tensor().dtype == type.dtype &&
        positions.value()->tensor().dtype == type.dtype)
      return AddedPositions{tokens.value()->node(), positions.value()};
  }
  return std::nullopt;
}

ir::Value *asMatrix(ir::Value *positions, ir::Node &root, ir::GraphRewriter &rewriter) {
  if (positions->tensor().rank() == 2)
    return positions;
  return rewriter.create(ir::OpKind::Select, {positions, 0, 0}, root, &root)->result();
}

} // namespace cgc::passes
