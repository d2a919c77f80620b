// mean_rows_*: the launch shape and the check.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

inline constexpr uint32_t kMeanThreads = 256;
/// Threads with 16 adjacent bytes of a row each; the other threads of a CTA have other rows.
inline constexpr uint32_t kMeanLanes = 8;

/// Columns of one batch that a CTA computes.
inline uint64_t meanColumns(DType dtype) {
  return kMeanLanes * 16 / dtypeSize(dtype);
}
inline uint64_t meanSlices(uint64_t columns, DType dtype) {
  return (columns + meanColumns(dtype) - 1) / meanColumns(dtype);
}

/// A checked launch.
struct MeanRowsLaunch {
  int64_t rows, columns, batchStride, rowStride; ///< Of x.
  uint64_t slices;                               ///< CTAs for each batch.
  bool vectors;                                  ///< All rows of x can be read 16 bytes at a time.
};
Result<MeanRowsLaunch> checkMeanRows(const LaunchView &launch, DType dtype);

} // namespace cgc
