// depthwise_conv_*, stem_conv_* and pool_*: the launch shapes and the checks. Images are dense,
// [images, height, width, channels], but for those of stem_conv, which may have any strides.
#pragma once

#include "runtime/kernels/conv_windows.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/pointwise/activation.h"

#include <algorithm>

namespace cgc {

inline constexpr uint32_t kImageThreads = 256;
/// Windows along x that a warp of depthwise_conv computes, each for 64 channels of the result; and
/// the most rows of them.
inline constexpr int64_t kDepthwiseStrip = 8, kDepthwiseMaxRows = 4;
/// Pixels of the largest window of depthwise_conv.
inline constexpr int64_t kDepthwiseMaxPixels = 121;

/// How a launch of depthwise_conv divides its windows: a warp has `rows` rows of a strip, a CTA
/// `tileRows` such warps below each other for each of `tileStrips` strips.
struct DepthwiseShape {
  int64_t rows, tileRows, tileStrips;
  bool hasForm;         ///< The kernel has unrolled code, which reads pixels in shared memory.
  int64_t across, down; ///< CTAs of an image.
  /// With hasForm: the pixels that the windows of a CTA read, and the channels of each.
  int64_t lines = 0, linePixels = 0, channels = 0;
  std::array<int64_t, 2> grid; ///< CTAs of all images, and groups of 64 channels of the result.
  uint32_t threads, sharedBytes;

  static constexpr DepthwiseShape of(int64_t images, const ConvWindows &w, int64_t channels,
                                     int64_t results) {
    constexpr int64_t kWarps = kImageThreads / 32;
    constexpr int64_t kFewWarps = 2048; // About 16 for each SM of a large GPU.
    const auto parts = [](int64_t of, int64_t size) { return (of + size - 1) / size; };
    const bool isSquare = w.kernel[0] == w.kernel[1] && w.stride[0] == w.stride[1] &&
                          w.dilation == std::array<int64_t, 2>{1, 1};
    const int64_t strips = parts(w.result[1], kDepthwiseStrip), groups = parts(results, 64);
    DepthwiseShape shape{};
    shape.hasForm = isSquare && results <= 2 * channels && w.kernel[0] % 2 == 1 &&
                    w.kernel[0] > 1 && w.kernel[0] <= 7 &&
                    w.stride[0] <= (w.kernel[0] == 5 ? 1 : 2);
    const auto warps = [&](int64_t rows) {
      return images * groups * strips * parts(w.result[0], rows);
    };
    // A line's pixels serve several rows. But with little work, warps have few rows and CTAs few
    // warps, so that all SMs have some. With a stride of 2, a CTA reads four times as many pixels.
    const bool isSmall = warps(2) < kFewWarps, hasStride = w.stride[0] > 1;
    shape.rows = !shape.hasForm || isSmall                           ? 1
                 : hasStride || warps(kDepthwiseMaxRows) < kFewWarps ? 2
                                                                     : kDepthwiseMaxRows;
    const int64_t most = warps(1) < kFewWarps || hasStride ? kWarps / 2 : kWarps;
    shape.tileStrips = isSmall || strips == 1 || hasStride ? 1 : 2;
    // As many rows for each CTA of a column of them.
    const int64_t rows = parts(w.result[0], shape.rows);
    shape.down = parts(rows, most / shape.tileStrips);
    shape.tileRows = parts(rows, shape.down);
    shape.across = parts(strips, shape.tileStrips);
    shape.threads = uint32_t(32 * shape.tileRows * shape.tileStrips);
    shape.grid = {images * shape.across * shape.down, groups};
    int64_t bytes = w.kernel[0] * w.kernel[1] * 64 * 4; // Weights in f32.
    if (shape.hasForm) {
      const auto extent = [&](int64_t windows) {
        return (windows - 1) * w.stride[0] + w.kernel[0];
      };
      shape.lines = extent(shape.rows * shape.tileRows);
      shape.linePixels = extent(kDepthwiseStrip * shape.tileStrips);
      shape.channels = 64 / (results / channels);
      bytes += shape.lines * shape.linePixels * shape.channels * 2;
    }
    shape.sharedBytes = uint32_t(bytes);
    return shape;
  }
};

/// Sets where the windows of a kernel's parameter are, by int[2] of {height, width} each.
template <class Parameters> void setWindows(Parameters &p, const ConvWindows &w) {
  for (const size_t i : {0, 1}) {
    p.stride[i] = static_cast<int>(w.stride[i]);
    p.padding[i] = static_cast<int>(w.padding[i]);
    p.dilation[i] = static_cast<int>(w.dilation[i]);
  }
}

/// A tile of pool_backward for maxima: pixels of each side, and units of their channels.
inline constexpr int kPoolTile = 16, kPoolTileUnits = 8;
/// CTAs of pool and pool_backward for a result of this many elements, of which each CTA has so many
/// at a time. The kernels are correct with any number, because they loop over the grid.
constexpr uint32_t poolBlocks(uint64_t elements, uint64_t ofBlock = uint64_t(kImageThreads) * 4) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((elements + ofBlock - 1) / ofBlock, 1, uint64_t(1) << 16));
}
/// CTAs of pool_backward for maxima in the images, by tiles of vectors of 16 bits.
constexpr uint32_t maxPoolBackwardBlocks(uint64_t elements) {
  return poolBlocks(elements, uint64_t(kPoolTile) * kPoolTile * kPoolTileUnits * 8);
}

/// Images and the windows of a launch that are within each other's limits.
struct ImageLaunch {
  int64_t images, height, width, channels;
  ConvWindows windows;
};

/// A checked launch of depthwise_conv.
struct DepthwiseLaunch : ImageLaunch {
  DepthwiseShape shape;
  int64_t results; ///< Channels of y, a multiple of those of the images.
  bool vectors;    ///< Images and w are read 16 bytes at a time.
  Activation activation;
};
Result<DepthwiseLaunch> checkDepthwise(const LaunchView &launch, DType dtype);

/// A tile of a CTA of stem_conv: kStemLines lines of kStemColumns windows, of kStemChannels
/// channels. A CTA computes several in turn.
inline constexpr int64_t kStemLines = kImageThreads / 32, kStemColumns = 32, kStemChannels = 64;
/// Products of a step of stem_conv, and elements behind each row of weights in shared memory, which
/// spread the rows over its banks.
inline constexpr int64_t kStemK = 16, kStemPad = 8;
/// The most products of a result.
inline constexpr int64_t kStemMaxK = 256;
/// The most CTAs of stem_conv: two for each SM of a large GPU, as many as registers allow.
inline constexpr int64_t kStemMostBlocks = 264;
/// Shared memory that a CTA has on each GPU since sm_80, in bytes, so that two CTAs fit on an SM of
/// most.
inline constexpr int64_t kStemMaxSharedBytes = 80 << 10;

/// The work of a launch of stem_conv.
struct StemShape {
  int64_t k; ///< Products of a result.
  /// What the windows of a tile read of a channel: lines of whole vectors of 8, which may begin up
  /// to 7 pixels before the first window.
  int64_t lines, linePixels;
  int64_t pixels;       ///< What they read of all channels.
  int64_t across, down; ///< Tiles of an image.

  static constexpr StemShape of(const ConvWindows &w, int64_t channels) {
    const auto extent = [&](size_t i, int64_t windows) {
      return (windows - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
    };
    const int64_t lines = extent(0, kStemLines),
                  linePixels = (extent(1, kStemColumns) + 14) / 8 * 8;
    return {w.kernel[0] * w.kernel[1] * channels,
            lines,
            linePixels,
            channels * lines * linePixels,
            (w.result[1] + kStemColumns - 1) / kStemColumns,
            (w.result[0] + kStemLines - 1) / kStemLines};
  }
  constexpr int64_t paddedK() const { return (k + kStemK - 1) / kStemK * kStemK; }
  /// Bytes of weights, of the places of products, and of the pixels of two tiles.
  constexpr int64_t sharedBytes() const {
    return kStemChannels * (paddedK() + kStemPad) * 2 + paddedK() * 4 + 2 * pixels * 2;
  }
  constexpr int64_t tiles(int64_t images) const { return images * across * down; }
  /// The grid for y with this many channels.
  constexpr std::array<int64_t, 2> grid(int64_t images, int64_t results) const {
    return {std::min(tiles(images), kStemMostBlocks),
            (results + kStemChannels - 1) / kStemChannels};
  }
};
/// A checked launch of stem_conv.
struct StemLaunch : ImageLaunch {
  std::array<int64_t, 4> strides; ///< Of the images, in elements.
  int64_t results;                ///< Channels of y.
  bool vectors;                   ///< Lines of the images are read 16 bytes at a time.
  Activation activation;
};
Result<StemLaunch> checkStem(const LaunchView &launch, DType dtype);

enum class PoolKind : uint8_t { Average, Max };
/// The first numbers of a launch of pool or pool_backward, before the windows.
struct PoolNumbers {
  int64_t kind;          ///< A PoolKind.
  int64_t countsPadding; ///< Whether an average counts the zeros of the padding.
  int64_t divisor;       ///< Of a sum; 0: the number of elements.

  static PoolNumbers of(std::span<const int64_t> ints) { return {ints[0], ints[1], ints[2]}; }
  std::array<int64_t, 3> ints() const { return {kind, countsPadding, divisor}; }
};
/// A checked launch of pool or pool_backward.
struct PoolLaunch : ImageLaunch {
  PoolNumbers numbers;
  bool vectors; ///< Channels are processed 16 bytes at a time.
};
Result<PoolLaunch> checkPool(const LaunchView &launch, DType dtype);
Result<PoolLaunch> checkPoolBackward(const LaunchView &launch, DType dtype);

} // namespace cgc
