// aten.conv2d: two-dimensional convolution.
#include "ir/ops/batch_rules.h"
#include "ir/ops/convolution_rules.h"
#include "ir/ops/gradient_rules.h"

namespace cgc::ir {

const OpDef defs::Conv2d = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=none, int[] stride=[1,1], int[] "
              "padding=[0,0], int[] dilation=[1,1], int groups=1) -> Tensor",
    .traits = kPure | kGemm,
    .infer = [](const InferArgs &args,
                rules::Results &results) { return rules::convolution(args, results, 2); },
    .aten = "copy aten::conv2d",
    .batch = batch::convolution,
    .gradient =
        [](GradientBuilder &b) { return gradient::convolution(b, 2, /*transposed=*/false); },
    .doc = "input [N, C, H, W] (or without N), weight [O, C / groups, KH, KW], bias [O]: [N, O, "
           "OH, OW]. stride, padding and dilation have one or two elements.",
};

} // namespace cgc::ir
