// cgc.weight_gradient: the gradients of the weight and the bias of a linear layer.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcWeightGradient(const InferArgs &args, rules::Results &results) {
  const TensorType &grad = args.tensor("grad_out"), &input = args.tensor("input");
  if (!isFloating(input.dtype) || input.rank() < 1)
    return rules::mismatch("input", "[..., K] of a floating dtype", input);
  CGC_TRY(rules::sameDType(args, "input", {"grad_out"}));
  if (grad.rank() != input.rank() ||
      llvm::ArrayRef(grad.sizes).drop_back() != llvm::ArrayRef(input.sizes).drop_back())
    return rules::mismatch("grad_out", "[..., N] with the rows of 'input'", grad);
  if (!isFloating(args.dtype("dtype")))
    return rules::refuse("expected 'dtype' to be floating");
  const DType dtype = args.dtype("dtype");
  CGC_TRY(rules::addDense(results, dtype, {grad.sizes.back(), input.sizes.back()}));
  return args.boolean("bias") ? rules::addDense(results, dtype, {grad.sizes.back()}) : Status::ok();
}

Result<Values> defineCgcWeightGradient(OpBuilder &b) {
  const DType dtype = b.args().dtype("dtype");
  Value *grad = b.input("grad_out"), *input = b.input("input");
  if (!b.args().boolean("bias"))
    return Values{gradient::productOfRows(b, b.to(grad, dtype), b.to(input, dtype))};
  Dims rows;
  for (int64_t dim = 0; dim + 1 < grad->tensor().rank(); ++dim)
    rows.push_back(dim);
  Value *sum =
      rows.empty() ? b.to(grad, dtype) : b.call(OpKind::Sum, {grad, Arg::ints(rows), false, dtype});
  return Values{b.call(OpKind::CgcWeightGradient, {grad, input, dtype}), sum};
}

} // namespace

const OpDef defs::CgcWeightGradient = {
    .schema = "(Tensor grad_out, Tensor input, dtype dtype, bool bias=false) -> Tensor[]",
    .traits = kPure | kGemm,
    .infer = inferCgcWeightGradient,
    .decompose = defineCgcWeightGradient,
    .doc =
        "grad_out^T input over all rows: [N, K] of dtype `dtype`, from grad_out [..., N] and "
        "input [..., K]. With bias also the sum of grad_out over all rows, [N]. The sums are not "
        "rounded to a narrower dtype first.",
};

} // namespace cgc::ir
