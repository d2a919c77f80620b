// convolution_rules: the type rules of convolutions.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// The sizes of the result of a convolution over the last `spatial` dimensions of 'input', without
/// transposition: [N, C, ...] (or without N), 'weight' [O, C / groups, ...].
Result<Dims> convolutionSizes(const InferArgs &args, unsigned spatial);
/// Those of the adjoint of such a convolution: 'weight' [C, O / groups, ...].
Result<Dims> transposedConvolutionSizes(const InferArgs &args, unsigned spatial);
/// Those of the convolution of images [N, H, W, C] with `weight` [O, KH, KW, C / groups]: [N, OH,
/// OW, O].
Result<Dims> imageConvolutionSizes(const InferArgs &args, const Dims &images, const Dims &weight);
/// Adds a result of convolutionSizes(); 'bias' [O].
Status convolution(const InferArgs &args, Results &results, unsigned spatial);
/// Adds a result of transposedConvolutionSizes(); 'bias' [O].
Status transposedConvolution(const InferArgs &args, Results &results, unsigned spatial);

} // namespace cgc::ir::rules
