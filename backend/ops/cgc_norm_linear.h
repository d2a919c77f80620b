// Whether a cgc.norm_linear becomes one kernel, for the op that computes its input.
#pragma once

#include "backend/lowering.h"
#include "ir/op_views.h"

namespace cgc::backend {

/// Whether `op` becomes a kernel that reads the row statistics of its input, given that these are
/// placed when `op` is lowered. Values that are not lowered yet count with their expectedPlace().
bool lowersToNormGemm(const ir::CgcNormLinearOp &op, const BucketBuilder &builder);

} // namespace cgc::backend
