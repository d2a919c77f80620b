// aten.conv1d: one-dimensional convolution.
#include "ir/ops/batch_rules.h"
#include "ir/ops/convolution_rules.h"
#include "ir/ops/gradient_rules.h"

namespace cgc::ir {

const OpDef defs::Conv1d = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=none, int[] stride=[1], int[] "
              "padding=[0], int[] "
              "dilation=[1], int groups=1) -> Tensor",
    .traits = kPure | kGemm,
    .infer = [](const InferArgs &args,
                rules::Results &results) { return rules::convolution(args, results, 1); },
    .aten = "copy aten::conv1d",
    .batch = batch::convolution,
    .gradient =
        [](GradientBuilder &b) { return gradient::convolution(b, 1, /*transposed=*/false); },
    .doc = "input [N, C, W] (or without N), weight [O, C / groups, K], bias [O]: [N, O, OW].",
};

} // namespace cgc::ir
