// column_sums_*: the launch shape and the check.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

/// Columns of a CTA, each thread with eight of them, and its threads.
inline constexpr int64_t kColumnSumsColumns = 16, kColumnSumsVector = 8;
inline constexpr uint32_t kColumnSumsThreads = 512;

constexpr uint64_t columnSumsBlocks(int64_t columns) {
  return (uint64_t(columns) + kColumnSumsColumns - 1) / kColumnSumsColumns;
}

/// A checked launch.
struct ColumnSumsLaunch {
  int64_t rows, columns;
};
Result<ColumnSumsLaunch> checkColumnSums(const LaunchView &launch, DType dtype);

} // namespace cgc
