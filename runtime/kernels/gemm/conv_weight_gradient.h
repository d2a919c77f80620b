// conv_weight_gradient_* and sum_parts_f32: the launch shapes and the checks.
#pragma once

#include "runtime/kernels/conv_windows.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/tensor_map_shape.h"

#include <algorithm>

namespace cgc {

/// Windows of a step of conv_weight_gradient, and the channels of a group of columns: those of one
/// pixel of the kernel. Also the rows of a warpgroup.
inline constexpr int64_t kWeightGradientBox = 64;
/// Groups of columns of a CTA.
inline constexpr int64_t kWeightGradientGroups = 3;
inline constexpr uint32_t kWeightGradientBoxBytes = kWeightGradientBox * kWeightGradientBox * 2;

/// How a launch of conv_weight_gradient divides the gradient [results, pixels, channels] of a
/// weight, which is a sum over all windows.
struct WeightGradientShape {
  int64_t warpgroups; ///< Of a CTA, each with 64 results.
  int64_t groups;     ///< Of columns.
  int64_t rowTiles, columnTiles;
  int64_t steps;

  static constexpr WeightGradientShape of(int64_t windows, int64_t results, int64_t pixels,
                                          int64_t channels) {
    const auto parts = [](int64_t of, int64_t size) { return (of + size - 1) / size; };
    const int64_t warpgroups = results > kWeightGradientBox ? 2 : 1,
                  groups = pixels * parts(channels, kWeightGradientBox);
    return {warpgroups, groups, parts(results, warpgroups * kWeightGradientBox),
            parts(groups, kWeightGradientGroups), parts(windows, kWeightGradientBox)};
  }
  constexpr int64_t tiles() const { return rowTiles * columnTiles; }
  constexpr uint32_t threads() const { return uint32_t(warpgroups * 128 + 32); }
  constexpr uint32_t stageBytes() const {
    return uint32_t(warpgroups + kWeightGradientGroups) * kWeightGradientBoxBytes;
  }
  /// So that an SM has room for two CTAs of one warpgroup, or for one of two.
  constexpr uint32_t stages() const { return warpgroups == 1 ? 3 : 5; }
  constexpr uint32_t sharedBytes() const { return stages() * stageBytes() + 1024; }

  /// Into how many splits to divide the windows, so that all SMs have work. Each CTA adds up the
  /// windows of a split, and sum_parts the splits.
  constexpr int64_t splits(int64_t multiprocessors) const {
    const int64_t slots = multiprocessors * (warpgroups == 1 ? 2 : 1);
    // In steps: those of a CTA, and what writing and reading the parts of a split takes.
    constexpr int64_t kMost = 128, kLeastSteps = 8, kStepsOfParts = 8;
    int64_t best = 1, least = INT64_MAX;
    for (int64_t splits = 1; splits <= std::min(kMost, std::max(steps / kLeastSteps, int64_t{1}));
         ++splits) {
      const int64_t waves = (tiles() * splits + slots - 1) / slots,
                    cost = waves * ((steps + splits - 1) / splits) +
                           (splits > 1 ? kStepsOfParts * (splits * tiles() / slots + 1) : 0);
      if (cost < least) {
        least = cost;
        best = splits;
      }
    }
    return best;
  }
};

/// A checked launch of conv_weight_gradient, whose name ends with the results of a CTA.
struct WeightGradientLaunch {
  int64_t windows, results, pixels, channels, splits;
  WeightGradientShape shape;
  TensorMapShape grad;
  ImageMapShape image;
};
Result<WeightGradientLaunch> checkConvWeightGradient(const LaunchView &launch, DType dtype,
                                                     int64_t warpgroups);

inline constexpr uint32_t kSumPartsThreads = 256;
/// CTAs of sum_parts for this many elements of a part, four for each thread.
constexpr uint64_t sumPartsBlocks(uint64_t elements) {
  return (elements + kSumPartsThreads * 4 - 1) / (kSumPartsThreads * 4);
}
/// A checked launch of sum_parts.
struct SumPartsLaunch {
  int64_t elements, splits;
};
Result<SumPartsLaunch> checkSumParts(const LaunchView &launch);

} // namespace cgc
