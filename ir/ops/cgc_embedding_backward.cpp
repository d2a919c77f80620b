// cgc.embedding_backward: the gradient of an embedding's table.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcEmbeddingBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &grad = args.tensor("grad_output");
  if (grad.rank() < 1 || !isFloating(grad.dtype))
    return rules::mismatch("grad_output", "[..., D] of a floating dtype", grad);
  const TensorType &indices = args.tensor("indices");
  if (indices.dtype != DType::I64 && indices.dtype != DType::I32)
    return rules::mismatch("indices", "of dtype i64 or i32", indices);
  if (llvm::ArrayRef(grad.sizes).drop_back() != llvm::ArrayRef(indices.sizes))
    return rules::mismatch("indices",
                           rules::toString(llvm::ArrayRef(grad.sizes).drop_back()) +
                               ", as the rows of 'grad_output'",
                           indices);
  const int64_t rows = args.integer("num_weights"), padding = args.integer("padding_idx");
  if (rows == 0 && indices.numElements() != 0)
    return rules::mismatch("num_weights", "at least 1", rows);
  if (padding >= rows)
    return rules::mismatch("padding_idx", "less than " + llvm::Twine(rows), padding);
  return rules::addDense(results, grad.dtype, {rows, grad.sizes.back()});
}

Result<Values> defineCgcEmbeddingBackward(OpBuilder &b) {
  Value *grad = b.input("grad_output"), *indices = b.to(b.input("indices"), DType::I64);
  const int64_t padding = b.args().integer("padding_idx");
  if (padding >= 0) {
    Value *isPadding = b.call(OpKind::Eq, {indices, padding});
    grad = gradient::unless(b, b.call(OpKind::Unsqueeze, {isPadding, -1}), grad);
  }
  Value *zeros = b.zerosLike(b.result());
  return Values{b.call(OpKind::IndexPut, {zeros, Arg::List{indices}, grad, true})};
}

} // namespace

const OpDef defs::CgcEmbeddingBackward = {
    .schema = "(Tensor grad_output, Tensor indices, int num_weights, int padding_idx=-1) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferCgcEmbeddingBackward,
    .decompose = defineCgcEmbeddingBackward,
    .doc = "[num_weights, D]: each row is the sum of the rows of grad_output [..., D] whose index "
           "it is; row padding_idx is zero, if it is at least 0.",
};

} // namespace cgc::ir
