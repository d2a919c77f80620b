// Memory plan: places buffers in one arena so that buffers that may be alive at the same time do
// not overlap.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <vector>

namespace cgc::backend {

struct MemoryPlan {
  /// One offset per buffer, in bytes; a multiple of kBufferAlignment.
  std::vector<uint64_t> offsets;
  uint64_t arenaBytes = 0;
};

/// Places buffers of these sizes in bytes: the largest first, each into the smallest gap that is
/// large enough. Two buffers, given by their indices, overlap only if `mayShare` is true of them.
/// Deterministic. The arena is at most as large as the sum of the aligned buffers.
MemoryPlan planMemory(llvm::ArrayRef<uint64_t> bytes,
                      llvm::function_ref<bool(size_t, size_t)> mayShare);

} // namespace cgc::backend
