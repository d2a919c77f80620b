// aten.adaptive_avg_pool3d: average pooling to a given output size.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {

const OpDef defs::AdaptiveAvgPool3d = {
    .schema = "(Tensor self, int[] output_size) -> Tensor",
    .traits = kPure | kReduction,
    .infer = [](const InferArgs &args,
                rules::Results &results) { return rules::adaptivePool(args, results, 3); },
    .aten = "copy aten::adaptive_avg_pool3d",
    .batch = batch::allButLast<3>,
    .gradient = [](GradientBuilder &b) { return gradient::adaptivePool(b, 3); },
    .doc = "Averages of self [N, C, D, H, W] (or without N) over windows chosen such that the "
           "result is [N, C, output_size].",
};

} // namespace cgc::ir
