// aten.conv_transpose3d: three-dimensional transposed convolution.
#include "ir/ops/batch_rules.h"
#include "ir/ops/convolution_rules.h"
#include "ir/ops/gradient_rules.h"

namespace cgc::ir {

const OpDef defs::ConvTranspose3d = {
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=none, int[] stride=[1,1,1], int[] "
        "padding=[0,0,0], int[] output_padding=[0,0,0], int groups=1, int[] dilation=[1,1,1]) "
        "-> Tensor",
    .traits = kPure | kGemm,
    .infer = [](const InferArgs &args,
                rules::Results &results) { return rules::transposedConvolution(args, results, 3); },
    .aten = "copy aten::conv_transpose3d.input",
    .batch = batch::convolution,
    .gradient = [](GradientBuilder &b) { return gradient::convolution(b, 3, /*transposed=*/true); },
    .doc = "The adjoint of conv3d, as conv_transpose2d is of conv2d: input [N, C, D, H, W] (or "
           "without N), weight [C, O / groups, KD, KH, KW], bias [O].",
};

} // namespace cgc::ir
