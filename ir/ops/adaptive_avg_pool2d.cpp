// aten.adaptive_avg_pool2d: average pooling to a given output size.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {

const OpDef defs::AdaptiveAvgPool2d = {
    .schema = "(Tensor self, int[] output_size) -> Tensor",
    .traits = kPure | kReduction,
    .infer = [](const InferArgs &args,
                rules::Results &results) { return rules::adaptivePool(args, results, 2); },
    .aten = "copy aten::adaptive_avg_pool2d",
    .batch = batch::allButLast<2>,
    .gradient = [](GradientBuilder &b) { return gradient::adaptivePool(b, 2); },
    .doc = "Averages of self [N, C, H, W] (or without N) over windows chosen such that the result "
           "is [N, C, output_size].",
};

} // namespace cgc::ir
