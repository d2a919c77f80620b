// layer_norm_*, add_layer_norm_* and layer_norm_chain_*: the launch shape, the checks, which
// launches can write row statistics, and which can normalize twice.
#pragma once

#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/pointwise/activation.h"
#include "runtime/kernels/rowwise/row_statistics.h"

#include <algorithm>

namespace cgc {

/// Threads of a CTA, and its warps: each normalizes one row at a time, or several rows of up to 512
/// bytes.
inline constexpr uint32_t kLayerNormThreads = 128;
inline constexpr uint32_t kLayerNormRows = kLayerNormThreads / 32;

/// The most columns of a row that a warp keeps in registers.
inline constexpr int64_t kLayerNormCached = 1024;

/// The most CTAs for this many rows: one row for each warp.
constexpr uint64_t layerNormMostBlocks(int64_t rows) {
  return (uint64_t(rows) + kLayerNormRows - 1) / kLayerNormRows;
}
/// CTAs for this many rows: at most as many as a GPU with this many SMs holds at a time (5 on
/// each), so that a CTA reads weight and bias once for several rows.
constexpr uint64_t layerNormBlocks(int64_t rows, int64_t multiprocessors) {
  return std::min<uint64_t>(layerNormMostBlocks(rows), 5 * uint64_t(multiprocessors));
}

/// Whether a launch of layer_norm on 16-bit elements can write the row statistics of its result: if
/// all its tensors begin at multiples of 16 bytes (`aligned`), registers hold a row, and eight
/// lanes have the vectors of a group.
constexpr bool layerNormWritesRowStatistics(int64_t columns, bool aligned) {
  return aligned && columns <= kLayerNormCached && columns % kStatisticsGroup == 0;
}

/// Whether a launch of layer_norm_chain can normalize each row twice: if registers hold a row, of
/// whole vectors of 16 bytes.
constexpr bool layerNormChainIsTwice(int64_t columns, bool vectors) {
  return vectors && columns <= kLayerNormCached;
}

/// A checked launch.
struct LayerNormLaunch {
  int64_t rows, columns;
  int64_t addendRows; ///< Row r gets row r % addendRows of the addend.
  bool vectors;       ///< All rows begin and end at multiples of 16 bytes.
};
Result<LayerNormLaunch> checkLayerNorm(const LaunchView &launch, DType dtype, DType parameterType);
Result<LayerNormLaunch> checkAddLayerNorm(const LaunchView &launch, DType dtype,
                                          DType parameterType);

/// A checked launch of layer_norm_chain.
struct LayerNormChainLaunch : LayerNormLaunch {
  bool isTwice;
  Activation activation;
};
Result<LayerNormChainLaunch> checkLayerNormChain(const LaunchView &launch, DType dtype,
                                                 DType parameterType);

} // namespace cgc
