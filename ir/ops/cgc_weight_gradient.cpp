// cgc.weight_gradient: the gradient of the weight of a linear layer.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &grad = args.tensor("grad_out"), &input = args.tensor("input");
  if (!isFloating(input.dtype) || input.rank() < 1)
    return rules::mismatch("input", "[..., K] of a floating dtype", input);
  CGC_TRY(rules::sameDType(args, "input", {"grad_out"}));
  if (grad.rank() != input.rank() ||
      llvm::ArrayRef(grad.sizes).drop_back() != llvm::ArrayRef(input.sizes).drop_back())
    return rules::mismatch("grad_out", "[..., N] with the rows of 'input'", grad);
  if (!isFloating(args.dtype("dtype")))
    return rules::refuse("expected 'dtype' to be floating");
  return rules::addDense(results, args.dtype("dtype"), {grad.sizes.back(), input.sizes.back()});
}

} // namespace

const OpDef defs::WeightGradient = {
    .schema = "(Tensor grad_out, Tensor input, dtype dtype) -> Tensor",
    .traits = kPure | kGemm,
    .infer = infer,
    .doc = "grad_out^T input over all rows: [N, K] of dtype `dtype`, from grad_out [..., N] and "
           "input [..., K]. The sums are not rounded to a narrower dtype first.",
};

} // namespace cgc::ir
