// row_sums_*: the launch shape and the check.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <cstdint>

namespace cgc {

inline constexpr uint32_t kRowSumsThreads = 128;
/// The most columns of a row that one warp sums; a CTA sums longer ones, or a split of one.
inline constexpr int64_t kRowSumsWarpColumns = 1024;
/// Half of the largest int, so that the kernel may add a step to the last column.
inline constexpr uint64_t kRowSumsMostElements = INT32_MAX / 2;
constexpr uint64_t rowSumsBlocks(uint64_t rows, int64_t columns, uint64_t splits) {
  constexpr uint64_t kWarps = kRowSumsThreads / 32;
  return columns > kRowSumsWarpColumns ? rows * splits : (rows + kWarps - 1) / kWarps;
}

/// A checked launch. Each split but the last ones of a row has `part` columns.
struct RowSumsLaunch {
  int64_t rows, columns, splits, part;
  bool vectors; ///< Rows of x can be read 16 bytes at a time.
};
Result<RowSumsLaunch> checkRowSums(const LaunchView &launch, DType dtype);

} // namespace cgc
