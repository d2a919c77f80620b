// Memory plan: places buffers with known lifetimes in one arena so that those alive together do not
// overlap.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace cgc::backend {

/// A buffer is alive from the record that writes it first to the last record that touches it, both
/// included.
struct Lifetime {
  uint32_t first = 0, last = 0;
  uint64_t bytes = 0;
};

struct MemoryPlan {
  std::vector<uint64_t>
      offsets; ///< One for each lifetime, in bytes, multiples of kBufferAlignment.
  uint64_t arenaBytes = 0;
};

/// Greedy, largest buffer first, each into the smallest gap that takes it. Deterministic. The arena
/// is at most as large as the sum of the (aligned) buffers.
MemoryPlan planMemory(llvm::ArrayRef<Lifetime> lifetimes);

} // namespace cgc::backend
