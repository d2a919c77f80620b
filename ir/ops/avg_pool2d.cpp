// aten.avg_pool2d: two-dimensional average pooling.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {

const OpDef defs::AvgPool2d = {
    .schema = "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=[0,0], bool "
              "ceil_mode=false, bool count_include_pad=true, int? divisor_override=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::averagePool<2>,
    .batch = batch::allButLast<2>,
    .gradient = [](GradientBuilder &b) -> Status {
      b.set("self", b.call(OpKind::CgcAvgPool2dBackward,
                           {b.grad(), b.arg("self"), b.arg("kernel_size"), b.arg("stride"),
                            b.arg("padding"), b.arg("ceil_mode"), b.arg("count_include_pad"),
                            b.arg("divisor_override")}));
      return Status::ok();
    },
    .doc = "Averages of windows of self [N, C, H, W] (or without N): [N, C, OH, OW]. An empty "
           "stride means kernel_size.",
};

} // namespace cgc::ir
