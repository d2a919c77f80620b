// Tests of the memory plan: no overlap, bounds and determinism, on fixed and random lifetimes.
#include "backend/memory_plan.h"

#include "runtime/base/checked.h"
#include "runtime/plan/plan.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cgc::backend {
namespace {

/// The records, first to last, in which a buffer is alive.
struct Lifetime {
  uint32_t first = 0, last = 0;
  uint64_t bytes = 0;
};

/// Buffers whose lifetimes do not meet may share memory.
MemoryPlan planMemory(llvm::ArrayRef<Lifetime> lives) {
  std::vector<uint64_t> bytes;
  for (const Lifetime &life : lives)
    bytes.push_back(life.bytes);
  return backend::planMemory(bytes, [&](size_t a, size_t b) {
    return lives[a].last < lives[b].first || lives[b].last < lives[a].first;
  });
}

uint64_t aligned(uint64_t bytes) {
  return *alignUp(bytes, kBufferAlignment);
}

/// The largest number of bytes alive at one time, which is a lower bound of any plan.
uint64_t peakBytes(const std::vector<Lifetime> &lives) {
  std::map<uint32_t, int64_t> changes;
  for (const Lifetime &life : lives) {
    auto bytes = static_cast<int64_t>(*alignUp(life.bytes, placementAlignment(life.bytes)));
    changes[life.first] += bytes;
    changes[life.last + 1] -= bytes;
  }
  int64_t now = 0, peak = 0;
  for (auto [time, change] : changes)
    peak = std::max(peak, now += change);
  return static_cast<uint64_t>(peak);
}

TEST(MemoryPlan, EmptyNeedsNothing) {
  EXPECT_EQ(planMemory({}).arenaBytes, 0u);
}

TEST(MemoryPlan, BuffersThatNeverMeetShareMemory) {
  Lifetime lives[] = {{0, 1, 1000}, {2, 3, 1000}};
  MemoryPlan plan = planMemory(lives);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.arenaBytes, 1024u);
}

TEST(MemoryPlan, ReadAndWriteOfOneRecordDoNotShare) {
  Lifetime lives[] = {{0, 1, 256}, {1, 2, 256}};
  MemoryPlan plan = planMemory(lives);
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.arenaBytes, 512u);
}

TEST(MemoryPlan, TakesTheSmallestGapThatFits) {
  // Placed by size: 0, 1 and 2 are stacked; 1 ends early, so 3 goes into its gap and not on top.
  Lifetime lives[] = {{0, 9, 4096}, {0, 1, 2048}, {0, 9, 1024}, {5, 9, 512}};
  MemoryPlan plan = planMemory(lives);
  EXPECT_EQ(plan.offsets[3], plan.offsets[1]);
  EXPECT_EQ(plan.arenaBytes, 4096u + 2048u + 1024u);
}

TEST(MemoryPlan, OfSeveralGapsTheSmallestIsTaken) {
  // Stacked by size. 1 and 3 leave gaps, of which the second one is smaller and fits.
  const Lifetime secondIsSmaller[] = {{0, 9, 65536}, {0, 1, 32768}, {0, 9, 16384},
                                      {0, 1, 8192},  {0, 9, 4096},  {5, 9, 2048}};
  MemoryPlan plan = planMemory(secondIsSmaller);
  EXPECT_EQ(plan.offsets[5], plan.offsets[3]);
  // 2 fills most of the gap of 1, and that of 4 is larger than the rest.
  const Lifetime firstIsSmaller[] = {{0, 9, 65536}, {0, 1, 32768}, {5, 9, 28672}, {0, 9, 16384},
                                     {0, 1, 8192},  {0, 9, 4096},  {5, 9, 2048}};
  plan = planMemory(firstIsSmaller);
  EXPECT_EQ(plan.offsets[6], plan.offsets[1] + 28672);
}

TEST(MemoryPlan, MoreThan64BitsDoesNotWrapToASmallArena) {
  const Lifetime tooLarge[] = {{0, 1, UINT64_MAX}};
  EXPECT_EQ(planMemory(tooLarge).arenaBytes, UINT64_MAX);
  const Lifetime together[] = {{0, 1, uint64_t(1) << 63}, {0, 1, uint64_t(1) << 63}};
  EXPECT_EQ(planMemory(together).arenaBytes, UINT64_MAX);
}

TEST(MemoryPlan, ChainOfEqualBuffersNeedsTwo) {
  std::vector<Lifetime> lives;
  for (uint32_t i = 0; i < 100; ++i)
    lives.push_back({i, i + 1, 300});
  EXPECT_EQ(planMemory(lives).arenaBytes, 2 * aligned(300));
}

class RandomLifetimes : public testing::TestWithParam<unsigned> {};

TEST_P(RandomLifetimes, NeverOverlapAndStayWithinBounds) {
  std::mt19937 random(GetParam());
  auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  std::vector<Lifetime> lives;
  uint64_t sum = 0;
  for (uint32_t n = 1 + below(150); n > 0; --n) {
    uint32_t first = below(200);
    lives.push_back(
        {first, first + below(1 + below(60)), below(8) == 0 ? 0 : below(1u << (1 + below(20)))});
    sum += aligned(lives.back().bytes);
  }
  MemoryPlan plan = planMemory(lives);
  for (size_t i = 0; i < lives.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kBufferAlignment, 0u);
    EXPECT_LE(plan.offsets[i] + lives[i].bytes, plan.arenaBytes);
    for (size_t j = 0; j < i; ++j) {
      bool together = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
      bool apart = plan.offsets[i] + lives[i].bytes <= plan.offsets[j] ||
                   plan.offsets[j] + lives[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart || lives[i].bytes == 0 || lives[j].bytes == 0)
          << "buffers " << i << " and " << j;
    }
  }
  EXPECT_LE(plan.arenaBytes, sum);
  EXPECT_GE(plan.arenaBytes, peakBytes(lives));
  // Greedy by size stays near the bound; a planner that stops reusing memory does not.
  EXPECT_LE(plan.arenaBytes, 2 * peakBytes(lives));
  EXPECT_EQ(plan.offsets, planMemory(lives).offsets);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLifetimes, testing::Range(0u, 20u));

} // namespace
} // namespace cgc::backend
