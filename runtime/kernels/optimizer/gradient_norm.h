// square_sums_f32 and gradient_norm_f32: launch shapes and checks.
#pragma once

#include "runtime/kernels/optimizer/tensor_groups.h"

namespace cgc {

/// square_sums_f32 has one read for each group, and one write for all.
inline constexpr GroupShape kSquareSumsShape = {0, 1, 0};
/// The threads of gradient_norm_f32, which has one CTA.
inline constexpr uint32_t kNormThreads = 1024;

Result<TensorGroups> checkSquareSums(const LaunchView &launch);
/// The number of sums of a checked launch.
Result<uint64_t> checkGradientNorm(const LaunchView &launch);

} // namespace cgc
