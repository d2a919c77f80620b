// layer_norm_statistics_*, layer_norm_backward_* and layer_norm_parameters_f32: the launch shapes
// and the checks.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <algorithm>

namespace cgc {

/// Each warp of a CTA has one row at a time, in registers.
inline constexpr int64_t kNormTrainVector = 4;
inline constexpr uint32_t kNormStatisticsThreads = 128;

/// The most columns of the kernel for rows of so many f32, which ends its name; 0 if there is none.
constexpr int64_t normTrainColumns(int64_t columns) {
  return columns < kNormTrainVector || columns > 2048 || columns % kNormTrainVector != 0 ? 0
         : columns <= 1024                                                               ? 1024
                                                                                         : 2048;
}

constexpr uint64_t normStatisticsBlocks(int64_t rows) {
  return (uint64_t(rows) + 3) / 4;
}

/// The backward kernel: threads of a CTA, and its dynamic shared memory in bytes, in which each
/// warp adds the gradients of weight and bias.
constexpr uint32_t normBackwardThreads(int64_t columns) {
  return columns <= 1024 ? 256 : 128;
}
constexpr uint32_t normBackwardSharedBytes(int64_t columns) {
  return normBackwardThreads(columns) / 32 * 2 * uint32_t(columns) * 4;
}
/// The most CTAs; each has a row of partial sums.
constexpr uint64_t normBackwardMostBlocks(int64_t rows, int64_t columns) {
  const uint64_t warps = normBackwardThreads(columns) / 32;
  return (uint64_t(rows) + warps - 1) / warps;
}
/// CTAs on a GPU with this many SMs.
constexpr uint64_t normBackwardBlocks(int64_t rows, int64_t columns, int64_t multiprocessors) {
  return std::min<uint64_t>(normBackwardMostBlocks(rows, columns), uint64_t(multiprocessors));
}

/// layer_norm_parameters_f32: columns of a CTA, and its threads.
inline constexpr int64_t kNormParameterColumns = 32;
inline constexpr uint32_t kNormParameterThreads = 256;

/// A checked launch: of rows [rows, columns], or of partial sums.
struct NormTrainLaunch {
  int64_t rows, columns;
};
/// Normalizes rows of f32 to `dtype`, by the kernel for `columns`.
Result<NormTrainLaunch> checkNormStatistics(const LaunchView &launch, DType dtype, int64_t columns);
/// Computes the gradient of rows of f32 from those in `dtype`, by the kernel for `columns`.
Result<NormTrainLaunch> checkNormBackward(const LaunchView &launch, DType dtype, int64_t columns);
Result<NormTrainLaunch> checkNormParameters(const LaunchView &launch);

} // namespace cgc
