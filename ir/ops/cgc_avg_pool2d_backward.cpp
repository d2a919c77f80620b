// cgc.avg_pool2d_backward: the gradient of average pooling.
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcAvgPool2dBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  llvm::SmallVector<Inferred, 1> pooled;
  CGC_TRY(rules::averagePool<2>(args, pooled));
  if (args.tensor("grad_output").sizes != pooled.front().type.sizes)
    return rules::mismatch(
        "grad_output", rules::toString(pooled.front().type.sizes) + ", as the averages of 'self'",
        args.tensor("grad_output"));
  CGC_TRY(rules::sameDType(args, "self", {"grad_output"}));
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::CgcAvgPool2dBackward = {
    .schema = "(Tensor grad_output, Tensor self, int[] kernel_size, int[] stride, int[] padding, "
              "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCgcAvgPool2dBackward,
    .aten = "aten::avg_pool2d_backward.grad_input",
    .doc = "The gradient of self [N, C, H, W] (or without N): each element of grad_output spread "
           "over its window.",
};

} // namespace cgc::ir
