// layer_norm and add_layer_norm: the launch shape that the kernels expect.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cgc {

/// Threads of a block; each warp normalises one row at a time.
inline constexpr uint32_t kLayerNormThreads = 128;
inline constexpr uint32_t kLayerNormRows = kLayerNormThreads / 32;

/// Blocks for so many rows: as many as there is work for, and no more than fit on a large GPU at a
/// time, so that weight and bias are read once for several rows.
constexpr uint64_t layerNormBlocks(int64_t rows) {
  return std::min<uint64_t>((uint64_t(rows) + kLayerNormRows - 1) / kLayerNormRows, 5 * 132);
}

} // namespace cgc
