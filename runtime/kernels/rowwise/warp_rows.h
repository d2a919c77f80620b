// Launch shape of kernels that process each row with one warp.
#pragma once

#include <cstdint>

namespace cgc {

inline constexpr uint32_t kWarpRowThreads = 128;
inline constexpr uint32_t kWarpRows = kWarpRowThreads / 32;
constexpr uint64_t warpRowBlocks(uint64_t rows) {
  return (rows + kWarpRows - 1) / kWarpRows;
}

} // namespace cgc
