// depthwise_conv_* and pool_*: the launch shapes and the checks. Images are dense, [images, height,
// width, channels].
#pragma once

#include "runtime/kernels/conv_windows.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/pointwise/activation.h"

#include <algorithm>

namespace cgc {

inline constexpr uint32_t kImageThreads = 256;
/// Windows along x that a warp of depthwise_conv computes, each for 64 channels.
inline constexpr int64_t kDepthwiseStrip = 8;

/// The grid of depthwise_conv: groups of eight strips, and groups of 64 channels.
constexpr std::array<uint32_t, 2> depthwiseGrid(int64_t images, const ConvWindows &windows,
                                                int64_t channels) {
  const int64_t strips =
      images * windows.result[0] * ((windows.result[1] + kDepthwiseStrip - 1) / kDepthwiseStrip);
  constexpr int64_t kWarps = kImageThreads / 32;
  return {static_cast<uint32_t>((strips + kWarps - 1) / kWarps),
          static_cast<uint32_t>((channels + 63) / 64)};
}

/// CTAs of pool for a result of this many elements. The kernel is correct with any number, because
/// it loops over the grid.
constexpr uint32_t poolBlocks(uint64_t elements) {
  constexpr uint64_t kElements = uint64_t(kImageThreads) * 4;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((elements + kElements - 1) / kElements, 1, uint64_t(1) << 16));
}

/// Images and the windows of a launch that are within each other's limits.
struct ImageLaunch {
  int64_t images, height, width, channels;
  ConvWindows windows;
};

/// A checked launch of depthwise_conv.
struct DepthwiseLaunch : ImageLaunch {
  Activation activation;
};
Result<DepthwiseLaunch> checkDepthwise(const LaunchView &launch, DType dtype);

enum class PoolKind : uint8_t { Average, Max };
/// The first numbers of a launch of pool, before the windows.
struct PoolNumbers {
  int64_t kind;          ///< A PoolKind.
  int64_t countsPadding; ///< Whether an average counts the zeros of the padding.
  int64_t divisor;       ///< Of a sum; 0: the number of elements.

  static PoolNumbers of(std::span<const int64_t> ints) { return {ints[0], ints[1], ints[2]}; }
  std::array<int64_t, 3> ints() const { return {kind, countsPadding, divisor}; }
};
/// A checked launch of pool.
struct PoolLaunch : ImageLaunch {
  PoolNumbers numbers;
  bool vectors; ///< Channels are processed 16 bytes at a time.
};
Result<PoolLaunch> checkPool(const LaunchView &launch, DType dtype);

} // namespace cgc
