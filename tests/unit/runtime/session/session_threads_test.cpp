// Session: many threads, and plans that are exchanged while they run.
#include "tests/unit/runtime/session/served_plan.h"

#include <future>
#include <limits>
#include <random>
#include <thread>

namespace cgc::test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class SessionThreads : public ServedPlanTest {
protected:
  /// Calls `body` with its index in `count` threads.
  static void inThreads(int count, const std::function<void(int)> &body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back(body, i);
    for (std::thread &thread : threads)
      thread.join();
  }

  const std::vector<float> before_ = {1, 2, 3, 4}, after_ = {50, 60, 70, 80};
  const std::shared_ptr<const Plan> plan_ = toPlan(servedPlan(before_)),
                                    other_ = toPlan(servedPlan(after_));
};

TEST_F(SessionThreads, EachGetsTheRowsOfItsOwnRequests) {
  Session session = createSession(plan_, {.contexts = 3});
  std::atomic<int> wrong = 0;
  inThreads(16, [&](int thread) {
    std::mt19937 random(thread);
    for (int i = 0; i < 60; ++i) {
      const int64_t n = std::uniform_int_distribution<int64_t>(1, 200)(random);
      const float first = float(1000 * thread + i);
      const auto y = run(session, "rows", {n, 4}, first);
      wrong += !y.isOk() || *y != expected({n, 4}, first);
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(session.stats().requests, 16u * 60);
  EXPECT_EQ(session.stats().failures, 0u);
}

TEST_F(SessionThreads, EveryResultIsOfTheOldOrOfTheNewWeights) {
  Session session = createSession(plan_, {.contexts = 2});
  std::atomic<int> wrong = 0, old = 0;
  std::atomic<bool> done = false;
  std::thread swaps([&] {
    for (int i = 0; i < 12; ++i) {
      EXPECT_TRUE(session.swapWeights(i % 2 ? plan_ : other_).isOk());
      std::this_thread::sleep_for(1ms);
    }
    done = true;
  });
  inThreads(8, [&](int thread) {
    std::mt19937 random(thread);
    while (!done) {
      const int64_t n = std::uniform_int_distribution<int64_t>(1, 100)(random);
      const auto y = run(session, "rows", {n, 4});
      const bool isOld = y.isOk() && *y == expected({n, 4}, 0, before_);
      old += isOld;
      wrong += !isOld && !(y.isOk() && *y == expected({n, 4}, 0, after_));
    }
  });
  swaps.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(old, 0);
  EXPECT_EQ(session.stats().failures, 0u);
  EXPECT_EQ(session.stats().updates, 12u);
  EXPECT_EQ(session.plan(), plan_); // The last of an even number of swaps.
}

TEST_F(SessionThreads, AnUpdateServesNewBucketsAndFailsNoRequest) {
  SamplePlan larger = servedPlan();
  larger.plan.entries[0].buckets.push_back(sumBucket({100, 4}, 0));
  const auto next = toPlan(larger);
  Session session = createSession(plan_, {.contexts = 2});
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::thread update([&] {
    EXPECT_TRUE(session.update(next).isOk());
    done = true;
  });
  inThreads(4, [&](int) {
    do
      wrong += *run(session, "rows", {100, 4}) != expected({100, 4});
    while (!done);
  });
  update.join();
  EXPECT_EQ(wrong, 0);
  const uint64_t runs = session.stats().bucketRuns;
  EXPECT_TRUE(run(session, "rows", {100, 4}).isOk());
  EXPECT_EQ(session.stats().bucketRuns, runs + 1); // The new bucket.
}

TEST_F(SessionThreads, APlanOfAnotherModelIsRefused) {
  Session session = createSession(plan_);
  const auto refused = [&](const std::function<void(PlanData &)> &change, const std::string &update,
                           const std::string &swap) {
    SamplePlan sample = servedPlan(after_);
    change(sample.plan);
    const auto plan = toPlan(sample);
    const Status updated = update.empty() ? Status::ok() : session.update(plan),
                 swapped = session.swapWeights(plan);
    if (!update.empty()) {
      EXPECT_EQ(updated.code(), Code::Usage);
      EXPECT_THAT(updated.message(), HasSubstr(update));
    }
    EXPECT_EQ(swapped.code(), Code::Usage);
    EXPECT_THAT(swapped.message(), HasSubstr(swap));
  };
  refused([](PlanData &p) { p.entries.erase(p.entries.begin()); },
          "the plan has no entry 'rows', which the session serves", "4 entries instead of 5");
  refused([](PlanData &p) { p.entries[0].name = "other"; }, "no entry 'rows'",
          "entry 'other' is in the place of 'rows'");
  refused(
      [](PlanData &p) {
        for (Bucket &bucket : p.entries[0].buckets)
          bucket.inputs[0].name = "z";
      },
      "input 0 is 'z' instead of 'x'", "entry 'rows', bucket 0: its inputs differ");
  refused([](PlanData &p) { p.weights[0].name = "v"; }, "",
          "weight 'w' differs in name, dtype or sizes from 'v'");
  refused([](PlanData &p) { p.entries[0].buckets.pop_back(); }, "", "3 buckets instead of 4");
  refused([](PlanData &p) { p.precision = DType::F32; }, "", "its precision differs");
  if (kTestDevice == DeviceKind::Cuda)
    refused([](PlanData &p) { p.tf32 = true; }, "", "its precision differs");
  refused(
      [](PlanData &p) {
        for (Bucket &bucket : p.entries[0].buckets)
          bucket.outputs[0].name = "z";
      },
      "output 0 is 'z' instead of 'y'", "entry 'rows', bucket 0: its outputs differ");
  refused([](PlanData &p) { p.entries[0].buckets[1].arenaBytes += kBufferAlignment; }, "",
          "bucket 1: its memory plan differs");
  refused([](PlanData &p) { p.entries[0].buckets[1].records[1].location = LocationId(0); }, "",
          "bucket 1: record 1 (aten::add");
  refused([](PlanData &p) { p.entries[0].buckets[1].records[1].branch = 1; }, "",
          "bucket 1: record 1 (aten::add");
  const auto refusedWeights = [&](const std::vector<Weight> &weights, const std::string &text) {
    SamplePlan sample = servedPlan(after_);
    sample.plan.weights = weights;
    sample.weights.clear();
    for (const Weight &weight : weights)
      sample.weights.emplace_back(*tensorBytes(weight.dtype, weight.sizes));
    const Status swapped = session.swapWeights(toPlan(sample));
    EXPECT_EQ(swapped.code(), Code::Usage);
    EXPECT_THAT(swapped.message(), HasSubstr(text));
  };
  refusedWeights({{.name = "w", .dtype = DType::F32, .sizes = {2, 2}}}, "weight 'w' differs");
  refusedWeights({{.name = "w", .dtype = DType::F32, .sizes = {4}},
                  {.name = "v", .dtype = DType::F32, .sizes = {4}}},
                 "2 weights instead of 1");
  EXPECT_EQ(session.update(nullptr).code(), Code::Usage);
  EXPECT_EQ(*run(session, "rows", {1, 4}), expected({1, 4})); // The plan stayed.
  EXPECT_EQ(session.stats().updates, 0u);
}

TEST_F(SessionThreads, WaitingRequestsFailAtTheLimits) {
  std::atomic<bool> running = false, finish = false;
  Session session = createSession(plan_, {.contexts = 1, .maxWaiting = 1, .timeout = 50ms});
  onNeg = [&](const std::vector<float> &) {
    running = true;
    while (!finish)
      std::this_thread::yield();
  };
  std::thread busy([&] { EXPECT_TRUE(run(session, "rows", {1, 4}).isOk()); });
  while (!running)
    std::this_thread::yield();
  const Status late = run(session, "rows", {1, 4}).status();
  EXPECT_EQ(late.code(), Code::Busy);
  EXPECT_THAT(late.message(), HasSubstr("no context became free within 50 ms"));
  finish = true;
  busy.join();
  EXPECT_EQ(session.stats().waits, 1u);
  EXPECT_GE(session.stats().waitMicros, 50'000u);
  EXPECT_TRUE(run(session, "rows", {1, 4}).isOk());
}

TEST_F(SessionThreads, TheLongestTimeOutIsNone) {
  Session session = createSession(
      plan_, {.timeout = std::chrono::milliseconds(std::numeric_limits<int64_t>::max())});
  auto reservation = std::make_unique<Reservation>(*session.reserve("rows", 4));
  auto waiting = std::async(std::launch::async, [&] { return run(session, "rows", {4, 4}); });
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  reservation.reset();
  EXPECT_EQ(*waiting.get(), expected({4, 4}));
}

TEST_F(SessionThreads, NothingStaysOnTheDevice) {
  const uint64_t bytes = deviceBytesInUse();
  const size_t handles = deviceHandlesInUse();
  {
    Session session = createSession(plan_, {.contexts = 3});
    EXPECT_TRUE(run(session, "rows", {70, 4}).isOk());
    EXPECT_TRUE(session.swapWeights(other_).isOk());
    EXPECT_FALSE(session.swapWeights(toPlan(samplePlan())).isOk());
  }
  EXPECT_EQ(deviceBytesInUse(), bytes);
  EXPECT_EQ(deviceHandlesInUse(), handles);
}

} // namespace
} // namespace cgc::test
