// sum_rows_*: the launch shape and the check.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

inline constexpr uint32_t kSumRowsThreads = 256;
/// Threads with 16 adjacent bytes of a row each; the other threads of a CTA have other rows.
inline constexpr uint32_t kSumRowsLanes = 8;

/// Columns of one batch that a CTA computes.
inline uint64_t sumRowsColumns(DType dtype) {
  return kSumRowsLanes * 16 / dtypeSize(dtype);
}
inline uint64_t sumRowsSlices(uint64_t columns, DType dtype) {
  return (columns + sumRowsColumns(dtype) - 1) / sumRowsColumns(dtype);
}

/// A checked launch.
struct SumRowsLaunch {
  int64_t rows, columns, batchStride, rowStride; ///< Of x.
  uint64_t slices;                               ///< CTAs for each batch.
  bool vectors;                                  ///< All rows of x can be read 16 bytes at a time.
};
Result<SumRowsLaunch> checkSumRows(const LaunchView &launch, DType dtype);

} // namespace cgc
