// convolution_rules: the type rules of convolutions.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Adds the result of a convolution over the last `spatial` dimensions of 'input', without
/// transposition: [N, C, ...] (or without N), 'weight' [O, C / groups, ...], 'bias' [O].
Status convolution(const InferArgs &args, Results &results, unsigned spatial);
/// Adds the result of the adjoint of such a convolution: 'weight' [C, O / groups, ...], 'bias' [O].
Status transposedConvolution(const InferArgs &args, Results &results, unsigned spatial);

} // namespace cgc::ir::rules
