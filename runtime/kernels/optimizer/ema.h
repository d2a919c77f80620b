// ema_f32: the check.
#pragma once

#include "runtime/kernels/optimizer/tensor_groups.h"

namespace cgc {

/// Each group reads an average and a parameter, and writes the average. `skip` is shared.
inline constexpr GroupShape kEmaShape = {1, 2, 1};

Result<TensorGroups> checkEma(const LaunchView &launch);

} // namespace cgc
