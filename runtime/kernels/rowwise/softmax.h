// Launch shape of softmax_*.
#pragma once

#include <cstdint>

namespace cgc {

inline constexpr uint32_t kSoftmaxThreads = 128;
/// The most columns of a row that one warp computes; a CTA computes longer ones.
inline constexpr int64_t kSoftmaxWarpColumns = 1024;
constexpr uint64_t softmaxBlocks(uint64_t rows, int64_t columns) {
  constexpr uint64_t kWarps = kSoftmaxThreads / 32;
  return columns > kSoftmaxWarpColumns ? rows : (rows + kWarps - 1) / kWarps;
}

} // namespace cgc
