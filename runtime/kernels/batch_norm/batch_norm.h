// batch_norm_*: the orders of elements, how CTAs share them, and the checks.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <algorithm>

namespace cgc {

/// The order of the elements of x.
enum class BatchNormOrder : uint8_t {
  Nchw, ///< [n, channels, ...]: planes of each channel.
  Nhwc, ///< [n, ..., channels]: rows of all channels.
};

inline constexpr uint32_t kBatchNormThreads = 256;
/// The CTAs that an SM runs at a time: the launch bounds keep registers for them.
inline constexpr uint32_t kBatchNormBlocksPerMultiprocessor = 4;
inline constexpr uint32_t kBatchNormRowBlocksPerMultiprocessor = 2;

/// Nchw: the splits of a channel of so many elements, each of which a CTA reduces: as many as give
/// each CTA a place on the GPU at the same time, and each thread at least 32 elements.
constexpr int64_t batchNormSplits(int64_t channels, int64_t elements, int64_t multiprocessors) {
  constexpr int64_t kElements = kBatchNormThreads * 32;
  const int64_t places = kBatchNormBlocksPerMultiprocessor * multiprocessors / channels,
                useful = (elements + kElements - 1) / kElements;
  return std::max<int64_t>(std::min(places, useful), 1);
}

/// Nhwc: the most vectors of 16 bytes in a tile, the channels of a CTA.
inline constexpr int64_t kBatchNormTileVectors = 8;
/// The vectors in a tile. Few channels are divided into more tiles, so that they need fewer splits.
constexpr int64_t batchNormTileVectors(int64_t channels, int64_t width) {
  return channels <= kBatchNormTileVectors * width ? kBatchNormTileVectors / 2
                                                   : kBatchNormTileVectors;
}
constexpr int64_t batchNormTiles(int64_t channels, int64_t width) {
  const int64_t tile = batchNormTileVectors(channels, width) * width;
  return (channels + tile - 1) / tile;
}
/// Nhwc: the splits of so many rows: as many as give each CTA a place on the GPU at the same time,
/// and each thread a batch of loads. At most 128, since the second launch reads the parts of all.
constexpr int64_t batchNormRowSplits(int64_t channels, int64_t width, int64_t rows,
                                     int64_t multiprocessors) {
  const int64_t atATime = 4 * kBatchNormThreads / batchNormTileVectors(channels, width),
                places = kBatchNormRowBlocksPerMultiprocessor * multiprocessors /
                         batchNormTiles(channels, width),
                useful = (rows + atATime - 1) / atATime;
  return std::clamp<int64_t>(std::min(places, useful), 1, 128);
}

/// The elements of each split of a channel but the last ones, which may have fewer or none: a
/// multiple of 8, so that no unit of 16 bytes belongs to two splits.
constexpr int64_t batchNormSplitElements(int64_t elements, int64_t splits) {
  return ((elements + splits - 1) / splits + 7) / 8 * 8;
}

/// The floats of the moments of a split: the number of elements, their mean, and the sum of the
/// squares of their deviations from it.
inline constexpr int64_t kBatchNormMoments = 3;
/// The floats of the sums of a split: of the gradient, and of the gradient times (x - mean).
inline constexpr int64_t kBatchNormSums = 2;

/// The operands of batch_norm_train_*: those that it reads, then those that it writes.
enum BatchNormTrainRead : size_t {
  kTrainX,
  kTrainMoments,
  kTrainWeight,
  kTrainBias,
  kTrainResidual,
  kTrainRunningMean,
  kTrainRunningVar
};
enum BatchNormTrainWrite : size_t {
  kTrainY,
  kTrainMean,
  kTrainInvstd,
  kTrainNewMean,
  kTrainNewVar
};

/// The tensor x of a checked launch. In Nchw, element e of a channel is element e % plane of its
/// plane e / plane.
struct BatchNormLayout {
  uint32_t channels;
  uint32_t plane;         ///< Nchw: the elements of a channel that are adjacent.
  uint32_t elements;      ///< Of a channel; Nhwc: the rows.
  uint32_t splits;        ///< Of a channel.
  uint32_t splitElements; ///< batchNormSplitElements().
  uint32_t
      width; ///< Nchw: elements that a thread loads at a time: of 16 bytes, half of them, or 1.
  uint32_t tileVectors; ///< Nhwc: batchNormTileVectors().
};
Result<BatchNormLayout> checkBatchNormMoments(const LaunchView &launch, DType dtype,
                                              BatchNormOrder order);
Result<BatchNormLayout> checkBatchNormTrain(const LaunchView &launch, DType dtype,
                                            BatchNormOrder order);
Result<BatchNormLayout> checkBatchNormSums(const LaunchView &launch, DType dtype,
                                           BatchNormOrder order);
Result<BatchNormLayout> checkBatchNormBackward(const LaunchView &launch, DType dtype,
                                               BatchNormOrder order);

} // namespace cgc
