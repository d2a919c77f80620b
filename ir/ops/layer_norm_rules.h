// layer_norm_rules: the type rules of layer normalization, forward and backward.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Adds the result of normalizing 'input' over its last dimensions, 'normalized_shape', with
/// optional `parameters`.
Status layerNorm(const InferArgs &args, Results &results,
                 llvm::ArrayRef<llvm::StringRef> parameters);
/// The dtype of means and variances of values of `dtype`: f32 for 16 bits, else the same.
DType statisticsDType(DType dtype);

} // namespace cgc::ir::rules
