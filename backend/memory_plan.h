// Memory plan: places buffers with known lifetimes in one arena so that buffers that are alive at
// the same time do not overlap.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace cgc::backend {

/// The inclusive range of records in which a buffer is alive: from the first record that writes it
/// to the last that touches it.
struct Lifetime {
  uint32_t first = 0, last = 0;
  uint64_t bytes = 0;
};

struct MemoryPlan {
  /// One offset per lifetime, in bytes; a multiple of kBufferAlignment.
  std::vector<uint64_t> offsets;
  uint64_t arenaBytes = 0;
};

/// Places the largest buffer first, each into the smallest gap that is large enough. Deterministic.
/// The arena is at most as large as the sum of the aligned buffers.
MemoryPlan planMemory(llvm::ArrayRef<Lifetime> lifetimes);

} // namespace cgc::backend
