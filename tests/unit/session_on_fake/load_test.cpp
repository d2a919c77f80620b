// Two models in one memory pool under load: many threads, any batches, weight swaps and an update.
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/runtime/session/served_plan.h"

#include <random>
#include <thread>

namespace cgc::test {
namespace {

class Load : public ServedPlanTest {};

TEST_F(Load, EveryRowEqualsTheRowComputedAlone) {
  constexpr int kThreads = 16, kCalls = 2000;
  const std::vector<float> first = {1, 2, 3, 4}, second = {50, 60, 70, 80};
  const auto planOf = [](const std::vector<float> &w) { return toPlan(servedPlan(w)); };
  SamplePlan larger = servedPlan(first);
  larger.plan.entries[0].buckets.push_back(sumBucket({128, 4}, 0));
  const auto one = planOf(first), other = planOf(second), updated = toPlan(larger);

  fake_cuda::reset();
  const uint64_t bytes = fake_cuda::allocatedBytes();
  const size_t handles = fake_cuda::liveHandles();
  std::atomic<int> wrong = 0, left = kThreads;
  {
    const auto pool = *MemoryPool::create({.target = DeviceKind::Cuda});
    SessionOptions options{.contexts = 2};
    options.engine.pool = pool;
    Session a = createSession(one, options), b = createSession(one, options);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        std::mt19937 random(thread);
        for (int i = 0; i < kCalls; ++i) {
          const int64_t n = std::uniform_int_distribution<int64_t>(1, 200)(random);
          const float from = float(1000 * thread + i);
          const auto y = run(i % 2 ? a : b, "rows", {n, 4}, from);
          const bool right = y.isOk() && (*y == expected({n, 4}, from, first) ||
                                          (i % 2 && *y == expected({n, 4}, from, second)));
          wrong += !right;
        }
        --left;
      });
    EXPECT_TRUE(b.update(updated).isOk()); // Beside the traffic.
    while (left > 0)
      for (const auto &plan : {other, one})
        EXPECT_TRUE(a.swapWeights(plan).isOk());
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(a.stats().failures + b.stats().failures, 0u);
    EXPECT_EQ(a.stats().requests + b.stats().requests, uint64_t(kThreads) * kCalls);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(fake_cuda::allocatedBytes(), bytes);
  EXPECT_EQ(fake_cuda::liveHandles(), handles);
}

} // namespace
} // namespace cgc::test
