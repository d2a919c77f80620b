// rows_*: the check. The launch shape is in warp_rows.h.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

/// A checked launch.
struct RowsLaunch {
  int64_t batches, rows, columns, batchStride, rowStride; ///< Sizes and strides of x.
  bool vectors; ///< All rows begin and end at multiples of 16 bytes.
};
Result<RowsLaunch> checkRows(const LaunchView &launch, DType dtype);

} // namespace cgc
