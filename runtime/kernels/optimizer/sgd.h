// sgd_f32: the check.
#pragma once

#include "runtime/kernels/optimizer/tensor_groups.h"

#include <span>

namespace cgc {

/// Without a momentum, the momenta are absent.
inline constexpr GroupShape kSgdShape = {kOptimizerReads, 3, 3, /*hasCopy=*/true};

/// The numbers of a launch.
struct SgdNumbers {
  double momentum, dampening, weightDecay;
  bool isNesterov;

  static SgdNumbers of(std::span<const int64_t> ints, std::span<const double> floats) {
    return {floats[0], floats[1], floats[2], ints[0] != 0};
  }
};

Result<TensorGroups> checkSgd(const LaunchView &launch);

} // namespace cgc
