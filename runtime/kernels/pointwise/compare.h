// compare_*: the comparisons, and the check. The launch shape is in elementwise.h.
#pragma once

#include "runtime/kernels/pointwise/strided.h"

namespace cgc {

/// Plans store the values: append, never reorder.
enum class CompareOp : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
inline constexpr int kNumCompareOps = 6;

/// The layout of a checked launch: of y, x and z, in this order.
Result<StridedLayout> checkCompare(const LaunchView &launch, DType dtype);

} // namespace cgc
