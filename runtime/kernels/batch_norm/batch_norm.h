// batch_norm_*: how CTAs share the channels of a tensor, the launch shape, and the checks.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <algorithm>

namespace cgc {

inline constexpr uint32_t kBatchNormThreads = 256;
/// The CTAs that an SM runs at a time: the launch bounds keep registers for them.
inline constexpr uint32_t kBatchNormBlocksPerMultiprocessor = 4;

/// The splits of a channel of so many elements: as many as give each CTA a place on the GPU at the
/// same time, and each thread at least 32 elements.
constexpr int64_t batchNormSplits(int64_t channels, int64_t elements, int64_t multiprocessors) {
  constexpr int64_t kElements = kBatchNormThreads * 32;
  const int64_t places = kBatchNormBlocksPerMultiprocessor * multiprocessors / channels,
                useful = (elements + kElements - 1) / kElements;
  return std::max<int64_t>(std::min(places, useful), 1);
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

/// The tensor x [n, channels, ...] of a checked launch. Element e of a channel is element
/// e % plane of its plane e / plane.
struct BatchNormLayout {
  uint32_t channels;
  uint32_t plane;         ///< The elements of a channel that are adjacent.
  uint32_t elements;      ///< Of a channel.
  uint32_t splits;        ///< CTAs for each channel.
  uint32_t splitElements; ///< batchNormSplitElements().
  uint32_t width; ///< Elements that a thread loads at a time: of 16 bytes, half of them, or 1.
};
Result<BatchNormLayout> checkBatchNormMoments(const LaunchView &launch, DType dtype);
Result<BatchNormLayout> checkBatchNormTrain(const LaunchView &launch, DType dtype);
Result<BatchNormLayout> checkBatchNormSums(const LaunchView &launch, DType dtype);
Result<BatchNormLayout> checkBatchNormBackward(const LaunchView &launch, DType dtype);

} // namespace cgc
