// Memory plan: greedy best-fit placement, largest buffer first.
#include "backend/memory_plan.h"

#include "runtime/base/checked.h"
#include "runtime/plan/plan.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <numeric>

namespace cgc::backend {
namespace {

/// Stands for a sum that overflows 64 bits. validate() refuses an arena of this size.
constexpr uint64_t kTooLarge = UINT64_MAX;

uint64_t endOf(uint64_t begin, uint64_t bytes) {
  return checkedAdd(begin, bytes).value_or(kTooLarge);
}

uint64_t paddedBytes(uint64_t bytes) {
  return alignUp(bytes, placementAlignment(bytes)).value_or(kTooLarge);
}

struct Placed {
  uint64_t begin, end;
};

/// The start of the smallest gap of at least `bytes` between the ranges of `taken`, which are
/// sorted by begin; the end of the last range if no gap is large enough.
uint64_t bestFit(llvm::ArrayRef<Placed> taken, uint64_t bytes) {
  uint64_t cursor = 0, best = 0, bestGap = UINT64_MAX;
  for (const Placed &block : taken) {
    if (block.begin > cursor && block.begin - cursor >= bytes && block.begin - cursor < bestGap) {
      best = cursor;
      bestGap = block.begin - cursor;
    }
    cursor = std::max(cursor, block.end);
  }
  return bestGap == UINT64_MAX ? cursor : best;
}

} // namespace

// Placing larger buffers first makes each begin at a multiple of its own alignment.
MemoryPlan planMemory(llvm::ArrayRef<uint64_t> bytes,
                      llvm::function_ref<bool(size_t, size_t)> mayShare) {
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  llvm::stable_sort(order, [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });

  MemoryPlan plan;
  plan.offsets.resize(bytes.size());
  std::vector<size_t> placed;
  for (size_t i : order) {
    const uint64_t padded = paddedBytes(bytes[i]);
    std::vector<Placed> taken;
    for (size_t j : placed)
      if (!mayShare(i, j))
        taken.push_back({plan.offsets[j], endOf(plan.offsets[j], paddedBytes(bytes[j]))});
    llvm::sort(taken, [](const Placed &a, const Placed &b) { return a.begin < b.begin; });
    plan.offsets[i] = bestFit(taken, padded);
    plan.arenaBytes = std::max(plan.arenaBytes, endOf(plan.offsets[i], padded));
    placed.push_back(i);
  }
  return plan;
}

} // namespace cgc::backend
