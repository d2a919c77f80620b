// adam_f32: the check.
#pragma once

#include "runtime/kernels/optimizer/tensor_groups.h"

#include <span>

namespace cgc {

inline constexpr GroupShape kAdamShape = {kOptimizerReads, 4, 4, /*hasCopy=*/true};

/// The numbers of a launch.
struct AdamNumbers {
  double beta1, beta2, eps, weightDecay;
  bool isDecoupled;

  static AdamNumbers of(std::span<const int64_t> ints, std::span<const double> floats) {
    return {floats[0], floats[1], floats[2], floats[3], ints[0] != 0};
  }
};

Result<TensorGroups> checkAdam(const LaunchView &launch);

} // namespace cgc
