// cgc.avg_pool2d_backward: the gradient of average pooling.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::AvgPool2dBackward = {
    .schema = "(Tensor grad_output, Tensor self, int[] kernel_size, int[] stride, int[] padding, "
              "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .aten = "aten::avg_pool2d_backward.grad_input",
    .doc = "The gradient of self [N, C, H, W]: each element of grad_output spread over its window.",
};

} // namespace cgc::ir
