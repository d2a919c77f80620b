// aten.avg_pool2d: two-dimensional average pooling.
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  CGC_TRY(rules::pool2d(args, results, /*dilation=*/{1, 1}));
  const TensorType &self = args.tensor("self");
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  if (!args.isNone("divisor_override") && args.integer("divisor_override") == 0)
    return rules::mismatch("divisor_override", "other than 0", 0);
  return Status::ok();
}

} // namespace

const OpDef defs::AvgPool2d = {
    .schema = "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=[0,0], bool "
              "ceil_mode=false, bool count_include_pad=true, int? divisor_override=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .doc = "Averages of windows of self [N, C, H, W] (or without N): [N, C, OH, OW]. An empty "
           "stride means kernel_size.",
};

} // namespace cgc::ir
