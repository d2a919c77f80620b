// layer_norm_rules: the type rules of layer normalization, forward and backward.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Adds the result of normalizing 'input' over its last dimensions, 'normalized_shape', with
/// optional 'weight' and 'bias'.
Status layerNorm(const InferArgs &args, Results &results);
/// The dtype of mean and rstd: f32 for an 'input' of 16 bits with f32 parameters, else 'input's.
DType statisticsDType(const InferArgs &args);

} // namespace cgc::ir::rules
