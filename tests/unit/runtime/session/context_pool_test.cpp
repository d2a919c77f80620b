// ContextPool: order of waiting threads, limits, and the choice of a context.
#include "runtime/session/context_pool.h"

#include "tests/unit/runtime/fake_provider.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

class Pool : public testing::Test {
protected:
  Pool() {
    provider_.ops = {{"aten::neg", nullptr}, {"aten::add", nullptr}};
    const SamplePlan sample = samplePlan();
    plan_ = std::make_unique<Plan>(*Plan::fromMemory(sample.plan, sample.weights));
    engine_ = std::make_unique<Engine>(*Engine::create(*plan_, {.provider = &provider_}));
  }
  void add(int device) { pool_.add(*Context::create(*engine_), device); }
  /// Waits until `count` threads wait for a context.
  void untilWaiting(size_t count) {
    while (pool_.waiting() != count)
      std::this_thread::yield();
  }

  FakeProvider provider_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Engine> engine_;
  ContextPool pool_;
};

TEST_F(Pool, ThreadsGetContextsInTheOrderInWhichTheyCame) {
  add(-1);
  auto lease = pool_.acquire({}, {});
  ASSERT_TRUE(lease.isOk());
  EXPECT_TRUE(pool_.isFull({}));
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto mine = pool_.acquire({}, {});
      order.push_back(i); // Only one thread has the context.
    });
    untilWaiting(i + 1);
  }
  (*lease).reset();
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(pool_.isFull({}));
}

TEST_F(Pool, TheLimitOnWaitingThreadsHolds) {
  add(-1);
  auto lease = pool_.acquire({}, {});
  std::thread waits([&] { EXPECT_TRUE(pool_.acquire({}, {.maxWaiting = 1}).isOk()); });
  untilWaiting(1);
  const Status refused = pool_.acquire({}, {.maxWaiting = 1}).status();
  EXPECT_EQ(refused.code(), Code::Busy);
  EXPECT_THAT(refused.message(), HasSubstr("all 1 contexts are in use and 1 requests wait"));
  (*lease).reset();
  waits.join();
}

TEST_F(Pool, AWaitEndsAtItsTimeOut) {
  add(-1);
  auto lease = pool_.acquire({}, {});
  const Status refused = pool_.acquire({}, {.timeout = 1ms}).status();
  EXPECT_EQ(refused.code(), Code::Busy);
  EXPECT_THAT(refused.message(), HasSubstr("no context became free within 1 ms"));
  // It does not wait any longer: the next thread gets the context.
  (*lease).reset();
  EXPECT_TRUE(pool_.acquire({}, {.timeout = 0ms}).isOk());
}

TEST_F(Pool, TheLeastBusyDeviceIsTakenAndTheContextThatWasIdleLongest) {
  for (const int device : {0, 0, 1, 1})
    add(device);
  std::vector<ContextPool::Lease> leases;
  std::vector<int> devices;
  for (int i = 0; i < 4; ++i) {
    leases.push_back(*pool_.acquire({}, {}));
    devices.push_back(leases.back()->device);
  }
  EXPECT_THAT(devices, ElementsAre(0, 1, 0, 1));
  PooledContext *const second = leases[2].get(), *const first = leases[0].get();
  leases[2].reset();
  leases[0].reset();
  // Both contexts of device 0 are free. The first was taken before the second.
  EXPECT_EQ((*pool_.acquire({}, {})).get(), first);
  EXPECT_EQ((*pool_.acquire({}, {})).get(), second);
}

TEST_F(Pool, AnIdleDeviceIsTakenEvenIfABusyOneHasTheContextThatWasIdleLonger) {
  for (const int device : {0, 0, 1})
    add(device);
  auto first = *pool_.acquire({}, {}), other = *pool_.acquire({}, {}),
       busy = *pool_.acquire({}, {});
  ASSERT_EQ(first->device, 0);
  ASSERT_EQ(other->device, 1);
  first.reset();
  other.reset();
  EXPECT_EQ((*pool_.acquire({}, {}))->device, 1);
}

TEST_F(Pool, AFilterWaitsForWhatItTakes) {
  add(0);
  add(1);
  auto ofOne = pool_.acquire({.device = 1}, {});
  EXPECT_EQ((*ofOne)->device, 1);
  EXPECT_FALSE(pool_.isFull({}));
  EXPECT_TRUE(pool_.isFull({.device = 1}));
  EXPECT_EQ(pool_.acquire({.device = 1}, {.timeout = 0ms}).status().code(), Code::Busy);
  EXPECT_EQ(pool_.acquire({.only = (*ofOne).get()}, {.timeout = 0ms}).status().code(), Code::Busy);
  // A thread that waits for device 1 does not keep another from device 0.
  std::thread waits([&] { EXPECT_EQ((*pool_.acquire({.device = 1}, {}))->device, 1); });
  untilWaiting(1);
  EXPECT_EQ((*pool_.acquire({}, {}))->device, 0);
  (*ofOne).reset();
  waits.join();
}

} // namespace
} // namespace cgc::test
