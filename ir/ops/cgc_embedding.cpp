// cgc.embedding: embedding lookup plus positions.
#include "ir/ops/row_statistics_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcEmbedding(const InferArgs &args, rules::Results &results) {
  const TensorType &indices = args.tensor("indices"), &weight = args.tensor("weight");
  const bool hasPositions = !args.isNone("positions");
  if ((hasPositions && indices.rank() != 2) ||
      (indices.dtype != DType::I64 && indices.dtype != DType::I32))
    return rules::mismatch(
        "indices", llvm::Twine(hasPositions ? "[B, T] " : "") + "of dtype i64 or i32", indices);
  if (weight.rank() != 2 || weight.sizes[0] == 0 || !isFloating(weight.dtype))
    return rules::mismatch("weight", "[N, E] of a floating dtype, nonempty", weight);
  CGC_TRY(rules::sameDType(args, "weight", {"positions"}));
  Dims sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  if (hasPositions &&
      llvm::ArrayRef(args.tensor("positions").sizes) != llvm::ArrayRef(sizes).drop_front())
    return rules::mismatch("positions", rules::toString({sizes[1], sizes[2]}),
                           args.tensor("positions"));
  CGC_TRY(rules::addDense(results, weight.dtype, sizes));
  return rules::addRowStatistics(args, results);
}

Result<Values> defineCgcEmbedding(OpBuilder &b) {
  Value *rows = b.call(OpKind::Embedding, {b.arg("weight"), b.arg("indices")});
  Values values{b.arg("positions").isNone() ? rows : b.add(rows, b.arg("positions"))};
  rules::defineRowStatistics(b, values);
  return values;
}

} // namespace

const OpDef defs::CgcEmbedding = {
    .schema =
        "(Tensor indices, Tensor weight, Tensor? positions=none, bool row_statistics=false) -> "
        "(Tensor, Tensor?)",
    .traits = kPure | kMove,
    .infer = inferCgcEmbedding,
    .decompose = defineCgcEmbedding,
    .doc = "Row indices[b, t] of weight [N, E] plus row t of positions [T, E]: [B, T, E]. Without "
           "positions, indices have any rank. Floating dtypes. With row_statistics, the second "
           "result is the row statistics of the first, as in cgc.linear.",
};

} // namespace cgc::ir
