// Sums over dimensions: the kernels that compute sum, mean and linalg_vector_norm.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// factor times the sum of the elements or of their squares; with `root`, the square root of that.
struct SumOptions {
  bool squares = false, root = false;
  double factor = 1;
};

/// Launches the sums of `x` over the dimensions of the argument `dim` of `node`: over all if it is
/// none or empty. They are added in f32, always in the same order. Returns false and adds nothing
/// for another target than cuda, other dtypes, and a tensor that is empty or too large.
bool launchSums(const ir::Node &node, const Place &x, const SumOptions &options,
                const Place &result, BucketBuilder &builder);

/// The number of elements that each sum over the dimensions of `dim` has.
int64_t elementsOfSum(const ir::Node &node, const Place &x);

} // namespace cgc::backend
