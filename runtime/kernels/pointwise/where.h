// where: the check. The launch shape is in elementwise.h.
#pragma once

#include "runtime/kernels/pointwise/strided.h"

namespace cgc {

/// The layout of a checked launch: of y, the condition, x and z, in this order.
Result<StridedLayout> checkWhere(const LaunchView &launch);

} // namespace cgc
