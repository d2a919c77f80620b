// softmax_* and log_softmax_*: the launch shape and the check.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

inline constexpr uint32_t kSoftmaxThreads = 128;
/// The most columns of a row that one warp computes; a CTA computes longer ones.
inline constexpr int64_t kSoftmaxWarpColumns = 1024;
constexpr uint64_t softmaxBlocks(uint64_t rows, int64_t columns) {
  constexpr uint64_t kWarps = kSoftmaxThreads / 32;
  return columns > kSoftmaxWarpColumns ? rows : (rows + kWarps - 1) / kWarps;
}

/// A checked launch.
struct SoftmaxLaunch {
  int64_t rows, columns;
};
Result<SoftmaxLaunch> checkSoftmax(const LaunchView &launch, DType dtype);

} // namespace cgc
