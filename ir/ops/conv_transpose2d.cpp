// aten.conv_transpose2d: two-dimensional transposed convolution.
#include "ir/ops/batch_rules.h"
#include "ir/ops/convolution_rules.h"
#include "ir/ops/gradient_rules.h"

namespace cgc::ir {

const OpDef defs::ConvTranspose2d = {
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=none, int[] stride=[1,1], int[] padding=[0,0], "
        "int[] output_padding=[0,0], int groups=1, int[] dilation=[1,1]) -> Tensor",
    .traits = kPure | kGemm,
    .infer = [](const InferArgs &args,
                rules::Results &results) { return rules::transposedConvolution(args, results, 2); },
    .aten = "copy aten::conv_transpose2d.input",
    .batch = batch::convolution,
    .gradient = [](GradientBuilder &b) { return gradient::convolution(b, 2, /*transposed=*/true); },
    .doc = "The adjoint of conv2d: input [N, C, H, W] (or without N), weight [C, O / groups, KH, "
           "KW], bias "
           "[O]: [N, O, (H - 1) * stride - 2 * padding + dilation * (KH - 1) + output_padding + 1, "
           "...].",
};

} // namespace cgc::ir
