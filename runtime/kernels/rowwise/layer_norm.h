// layer_norm and add_layer_norm: the launch shape that the kernels expect, and which launches can
// write moments.
#pragma once

#include "runtime/kernels/rowwise/row_statistics.h"

#include <algorithm>
#include <cstdint>

namespace cgc {

/// Threads of a block; each warp normalises one row at a time.
inline constexpr uint32_t kLayerNormThreads = 128;
inline constexpr uint32_t kLayerNormRows = kLayerNormThreads / 32;

/// Columns of a row up to which a warp can keep it in registers.
inline constexpr int64_t kLayerNormCached = 1024;

/// Most blocks for so many rows: one row for each warp.
constexpr uint64_t layerNormMostBlocks(int64_t rows) {
  return (uint64_t(rows) + kLayerNormRows - 1) / kLayerNormRows;
}
/// Blocks for so many rows: as many as there is work for, and no more than are on a GPU with so
/// many SMs at a time, so that weight and bias are read once for several rows.
constexpr uint64_t layerNormBlocks(int64_t rows, int64_t multiprocessors) {
  return std::min<uint64_t>(layerNormMostBlocks(rows), 5 * uint64_t(multiprocessors));
}

/// Whether a launch of layer_norm, of 16-bit elements, can write the moments of its result's rows:
/// if all its tensors begin at multiples of 16 bytes (`aligned`), registers keep the row and eight
/// lanes have the vectors of a group.
constexpr bool layerNormWritesMoments(int64_t columns, bool aligned) {
  return aligned && columns <= kLayerNormCached && columns % kMomentGroup == 0;
}

} // namespace cgc
