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

uint64_t paddedBytes(const Lifetime &life) {
  return alignUp(life.bytes, placementAlignment(life.bytes)).value_or(kTooLarge);
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
MemoryPlan planMemory(llvm::ArrayRef<Lifetime> lifetimes) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  llvm::stable_sort(order,
                    [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> placed;
  for (size_t i : order) {
    const Lifetime &life = lifetimes[i];
    uint64_t bytes = paddedBytes(life);
    std::vector<Placed> taken;
    for (size_t j : placed)
      if (lifetimes[j].first <= life.last && life.first <= lifetimes[j].last)
        taken.push_back({plan.offsets[j], endOf(plan.offsets[j], paddedBytes(lifetimes[j]))});
    llvm::sort(taken, [](const Placed &a, const Placed &b) { return a.begin < b.begin; });
    plan.offsets[i] = bestFit(taken, bytes);
    plan.arenaBytes = std::max(plan.arenaBytes, endOf(plan.offsets[i], bytes));
    placed.push_back(i);
  }
  return plan;
}

} // namespace cgc::backend
