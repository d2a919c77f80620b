// cgc.max_pool2d_backward: the gradient of maximum pooling.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (args.tensor("indices").sizes != args.tensor("grad_output").sizes)
    return rules::mismatch("indices", "of the sizes of 'grad_output'", args.tensor("indices"));
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::MaxPool2dBackward = {
    .schema = "(Tensor grad_output, Tensor self, int[] kernel_size, int[] stride, int[] padding, "
              "int[] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .aten = "aten::max_pool2d_with_indices_backward.grad_input",
    .doc = "The gradient of self: grad_output added at the places `indices` of the maxima.",
};

} // namespace cgc::ir
