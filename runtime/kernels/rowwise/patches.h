// patches_*: the launch shape and the check.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <algorithm>

namespace cgc {

inline constexpr uint32_t kPatchesThreads = 128;
/// CTAs for a result of this many bytes, 16 for each thread. The kernel is correct with any number,
/// because it loops over the grid.
constexpr uint32_t patchesBlocks(uint64_t bytes) {
  constexpr uint64_t kBytes = uint64_t(kPatchesThreads) * 16;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((bytes + kBytes - 1) / kBytes, 1, uint64_t(1) << 16));
}

/// A checked launch.
struct PatchesLaunch {
  int64_t across, down;  ///< Patches of an image along x and y.
  int64_t height, width; ///< Pixels of a patch.
  int64_t pixels;        ///< Elements of a patch; the rest of a row is zeros.
  int64_t columns;       ///< Elements of a row of y.
  bool vectors;          ///< All rows of y begin and end at multiples of 16 bytes.
};
Result<PatchesLaunch> checkPatches(const LaunchView &launch, DType dtype);

} // namespace cgc
