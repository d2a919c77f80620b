// MemoryPool: several models with one arena.
#include "tests/unit/runtime/session/served_plan.h"

#include "runtime/exec/memory_pool.h"

#include <thread>

namespace cgc::test {
namespace {

using testing::HasSubstr;

class Pooled : public ServedPlanTest {
protected:
  static std::shared_ptr<MemoryPool> createPool(uint64_t limit = 0) {
    auto pool = MemoryPool::create({.target = kTestDevice, .limit = limit});
    EXPECT_TRUE(pool.isOk()) << pool.status().message();
    return *pool;
  }
  Session createIn(const std::shared_ptr<MemoryPool> &pool, const std::shared_ptr<const Plan> &plan,
                   const std::string &name, int contexts = 1) {
    SessionOptions options{.contexts = contexts};
    options.engine.pool = pool;
    options.engine.name = name;
    return createSession(plan, options);
  }
  /// A plan whose arena is larger than a page of any device.
  static SamplePlan largePlan(const std::vector<float> &w) {
    SamplePlan sample = servedPlan(w);
    sample.plan.entries[0].buckets.push_back(sumBucket({300'000, 4}, 0));
    return sample;
  }

  const std::vector<float> small_ = {1, 2, 3, 4}, large_ = {50, 60, 70, 80};
  const std::shared_ptr<const Plan> plan_ = toPlan(servedPlan(small_)),
                                    largePlan_ = toPlan(largePlan(large_));
};

TEST_F(Pooled, TheArenaIsTheLargestNotTheSum) {
  const auto pool = createPool();
  EXPECT_EQ(pool->report().sum.arenas, 0u);
  Session first = createIn(pool, plan_, "first", 2);
  const PoolReport one = pool->report();
  EXPECT_EQ(one.models.size(), 1u);
  EXPECT_GE(one.sum.arenas, one.models[0].memory.arenas);
  EXPECT_EQ(one.sum.weights, 16u);
  {
    // The arena grows under captured graphs, which keep their addresses.
    Session second = createIn(pool, largePlan_, "second");
    const PoolReport both = pool->report();
    ASSERT_EQ(both.models.size(), 2u);
    EXPECT_EQ(both.models[1].name, "second");
    EXPECT_GT(both.models[1].memory.arenas, one.sum.arenas);
    EXPECT_GE(both.sum.arenas, both.models[1].memory.arenas);
    EXPECT_LT(both.sum.arenas, both.models[1].memory.arenas + (4u << 20)); // Rounded up.
    Session third = createIn(pool, plan_, "third");
    EXPECT_EQ(pool->report().sum.arenas, both.sum.arenas);
    EXPECT_EQ(*run(first, "rows", {70, 4}), expected({70, 4}, 0, small_));
    EXPECT_EQ(*run(second, "rows", {70, 4}), expected({70, 4}, 0, large_));
    EXPECT_EQ(*run(third, "rows", {70, 4}), expected({70, 4}, 0, small_));
  }
  const PoolReport after = pool->report();
  EXPECT_EQ(after.models.size(), 1u);
  EXPECT_EQ(after.sum.io, one.sum.io);
  EXPECT_GT(after.sum.peak, after.sum.total());
}

TEST_F(Pooled, ThreadsOfSeveralModelsShareTheArena) {
  const auto pool = createPool();
  Session first = createIn(pool, plan_, "first", 2), second = createIn(pool, largePlan_, "second");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        const int64_t n = 1 + (17 * i + thread) % 150;
        const auto y = run(thread % 2 ? second : first, "rows", {n, 4}, float(i));
        wrong += !y.isOk() || *y != expected({n, 4}, float(i), thread % 2 ? large_ : small_);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Pooled, APlanThatDoesNotFitIsRefusedWithTheBill) {
  const auto pool = createPool(4 << 20);
  Session first = createIn(pool, plan_, "first");
  const uint64_t before = deviceBytesInUse();
  SessionOptions options;
  options.engine.pool = pool;
  options.engine.provider = &provider_;
  const Status refused = Session::create(largePlan_, options).status();
  EXPECT_EQ(refused.code(), Code::OutOfMemory);
  EXPECT_THAT(refused.message(), HasSubstr("of the memory limit of 4.19 MB"));
  EXPECT_THAT(refused.message(), HasSubstr("for the arena and"));
  EXPECT_EQ(deviceBytesInUse(), before);
  EXPECT_EQ(*run(first, "rows", {3, 4}), expected({3, 4}));
}

TEST_F(Pooled, AnotherLimitOrDeviceIsRefused) {
  const auto pool = createPool();
  SessionOptions options;
  options.engine.pool = pool;
  options.engine.provider = &provider_;
  options.engine.memoryLimit = 1 << 20;
  EXPECT_THAT(Session::create(plan_, options).status().message(),
              HasSubstr("a memory limit is given besides a memory pool"));
  options.engine.memoryLimit = 0;
  SamplePlan other = servedPlan();
  other.plan.target = kTestDevice == DeviceKind::Cpu ? DeviceKind::Cuda : DeviceKind::Cpu;
  EXPECT_THAT(Session::create(toPlan(other), options).status().message(),
              HasSubstr("the memory pool is of another device than the engine"));
}

TEST_F(Pooled, MemoryIsFreedWithTheLastOwner) {
  const uint64_t bytes = deviceBytesInUse();
  const size_t handles = deviceHandlesInUse();
  {
    auto pool = createPool();
    Session first = createIn(pool, plan_, "first");
    pool.reset(); // The session keeps it.
    EXPECT_EQ(*run(first, "rows", {3, 4}), expected({3, 4}));
  }
  EXPECT_EQ(deviceBytesInUse(), bytes);
  EXPECT_EQ(deviceHandlesInUse(), handles);
}

} // namespace
} // namespace cgc::test
