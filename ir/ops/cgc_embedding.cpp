// cgc.embedding: embedding lookup plus positions.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &indices = args.tensor("indices"), &weight = args.tensor("weight");
  if (indices.rank() != 2 || (indices.dtype != DType::I64 && indices.dtype != DType::I32))
    return rules::mismatch("indices", "[B, T] of dtype i64 or i32", indices);
  if (weight.rank() != 2 || weight.sizes[0] == 0 || !isFloating(weight.dtype))
    return rules::mismatch("weight", "[N, E] of a floating dtype, nonempty", weight);
  CGC_TRY(rules::sameDType(args, "weight", {"positions"}));
  const TensorType &positions = args.tensor("positions");
  Dims sizes = {indices.sizes[0], indices.sizes[1], weight.sizes[1]};
  if (llvm::ArrayRef(positions.sizes) != llvm::ArrayRef(sizes).drop_front())
    return rules::mismatch("positions", rules::toString({sizes[1], sizes[2]}), positions);
  return rules::addDense(results, weight.dtype, sizes);
}

} // namespace

const OpDef defs::FusedEmbedding = {
    .schema = "(Tensor indices, Tensor weight, Tensor positions) -> Tensor",
    .traits = kPure | kMove,
    .infer = infer,
    .doc = "Row indices[b, t] of weight [N, E] plus row t of positions [T, E]: [B, T, E]. Floating "
           "dtypes.",
};

} // namespace cgc::ir
