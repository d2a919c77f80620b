// patches: the launch shape that the kernels expect.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cgc {

inline constexpr uint32_t kPatchesThreads = 128;
/// Blocks for a result of that many bytes, 16 for each thread. Any number is right: blocks go on
/// until all is done.
constexpr uint32_t patchesBlocks(uint64_t bytes) {
  constexpr uint64_t kBytes = uint64_t(kPatchesThreads) * 16;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((bytes + kBytes - 1) / kBytes, 1, uint64_t(1) << 16));
}

} // namespace cgc
