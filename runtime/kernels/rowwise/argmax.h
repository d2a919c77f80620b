// argmax_*: the check. The launch shape is in warp_rows.h.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

/// A checked launch. `columns` is below INT32_MAX.
struct ArgmaxLaunch {
  int64_t rows, columns;
};
Result<ArgmaxLaunch> checkArgmax(const LaunchView &launch, DType dtype);

} // namespace cgc
