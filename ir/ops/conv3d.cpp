// aten.conv3d: three-dimensional convolution.
#include "ir/ops/batch_rules.h"
#include "ir/ops/convolution_rules.h"
#include "ir/ops/gradient_rules.h"

namespace cgc::ir {

const OpDef defs::Conv3d = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=none, int[] stride=[1,1,1], int[] "
              "padding=[0,0,0], int[] dilation=[1,1,1], int groups=1) -> Tensor",
    .traits = kPure | kGemm,
    .infer = [](const InferArgs &args,
                rules::Results &results) { return rules::convolution(args, results, 3); },
    .aten = "copy aten::conv3d",
    .batch = batch::convolution,
    .gradient =
        [](GradientBuilder &b) { return gradient::convolution(b, 3, /*transposed=*/false); },
    .doc = "input [N, C, D, H, W] (or without N), weight [O, C / groups, KD, KH, KW], bias [O]: "
           "[N, O, OD, OH, OW].",
};

} // namespace cgc::ir
