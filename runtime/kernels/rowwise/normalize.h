// normalize_*: the check. The launch shape is in warp_rows.h.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

/// A checked launch.
struct NormalizeLaunch {
  int64_t rows, columns;
  bool vectors; ///< All rows begin and end at multiples of 16 bytes.
};
Result<NormalizeLaunch> checkNormalize(const LaunchView &launch, DType dtype);

} // namespace cgc
