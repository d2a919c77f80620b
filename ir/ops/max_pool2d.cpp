// aten.max_pool2d: two-dimensional maximum pooling.
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(auto dilation, rules::heightAndWidth(args, "dilation", 1));
  const TensorType &self = args.tensor("self");
  if (self.dtype == DType::Bool)
    return rules::mismatch("self", "of a numeric dtype", self);
  return rules::pool2d(args, results, dilation);
}

} // namespace

const OpDef defs::MaxPool2d = {
    .schema = "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=[0,0], int[] "
              "dilation=[1,1], bool ceil_mode=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .doc = "Maxima of windows of self [N, C, H, W] (or without N): [N, C, OH, OW]. An empty stride "
           "means kernel_size.",
};

} // namespace cgc::ir
