// cgc.layer_norm_backward: the gradients of layer normalization.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcLayerNormBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (args.tensor("grad_out").sizes != input.sizes)
    return rules::mismatch("grad_out", "of the sizes of 'input'", args.tensor("grad_out"));
  const DType grad = args.tensor("grad_out").dtype;
  if (!isFloating(grad) || dtypeSize(grad) != 2 || input.dtype != DType::F32)
    CGC_TRY(rules::sameDType(args, "input", {"grad_out"}));
  const Dims shape = args.ints("normalized_shape");
  if (shape.empty() || shape.size() > input.sizes.size())
    return rules::refuse("expected 'normalized_shape' to be the last sizes of 'input'");
  Dims rows = input.sizes;
  std::fill(rows.end() - static_cast<ptrdiff_t>(shape.size()), rows.end(), 1);
  for (llvm::StringRef name : {"mean", "rstd"})
    if (args.tensor(name).sizes != rows)
      return rules::mismatch(name, rules::toString(rows) + ", as the rows of 'input'",
                             args.tensor(name));
  CGC_TRY(rules::addDense(results, input.dtype, input.sizes));
  for (llvm::StringRef name : {"weight", "bias"})
    if (!args.isNone(name))
      CGC_TRY(rules::addDense(results, args.tensor(name).dtype, args.tensor(name).sizes));
  if (!args.isNone("residual")) {
    CGC_TRY(rules::sameDType(args, "input", {"residual"}));
    if (args.tensor("residual").sizes != input.sizes)
      return rules::mismatch("residual", "of the sizes of 'input'", args.tensor("residual"));
  }
  if (args.isNone("copy"))
    return Status::ok();
  if (!isFloating(args.dtype("copy")))
    return rules::refuse("expected 'copy' to be a floating dtype");
  return rules::addDense(results, args.dtype("copy"), input.sizes);
}

} // namespace

const OpDef defs::CgcLayerNormBackward = {
    .schema = "(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, "
              "Tensor? weight, Tensor? bias, Tensor? residual=none, dtype? copy=none) -> Tensor[]",
    .traits = kPure | kReduction,
    .infer = inferCgcLayerNormBackward,
    .doc = "The gradients of input and, where they are given, of weight and bias, from the results "
           "mean and rstd of layer_norm_statistics. The residual is added to the first. With copy, "
           "the last result is the first in that dtype. grad_out may have 16 bits if input is f32.",
};

} // namespace cgc::ir
