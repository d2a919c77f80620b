// cgc.max_pool2d_backward: the gradient of maximum pooling.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcMaxPool2dBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (args.tensor("indices").sizes != args.tensor("grad_output").sizes)
    return rules::mismatch("indices", "of the sizes of 'grad_output'", args.tensor("indices"));
  if (self.rank() != 3 && self.rank() != 4)
    return rules::mismatch("self", "[N, C, H, W] or [C, H, W]", self);
  if (args.tensor("indices").dtype != DType::I64)
    return rules::mismatch("indices", "of dtype i64", args.tensor("indices"));
  CGC_TRY(rules::sameDType(args, "self", {"grad_output"}));
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::CgcMaxPool2dBackward = {
    .schema = "(Tensor grad_output, Tensor self, int[] kernel_size, int[] stride, int[] padding, "
              "int[] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCgcMaxPool2dBackward,
    .doc = "The gradient of self: grad_output added at the places `indices` of the maxima.",
};

} // namespace cgc::ir
