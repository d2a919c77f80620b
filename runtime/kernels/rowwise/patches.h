// Launch shape of patches_*.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cgc {

inline constexpr uint32_t kPatchesThreads = 128;
/// CTAs for a result of this many bytes, 16 for each thread. The kernel is correct with any number,
/// because it loops over the grid.
constexpr uint32_t patchesBlocks(uint64_t bytes) {
  constexpr uint64_t kBytes = uint64_t(kPatchesThreads) * 16;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((bytes + kBytes - 1) / kBytes, 1, uint64_t(1) << 16));
}

} // namespace cgc
