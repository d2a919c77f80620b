// Session: the counters of buckets, replays and captures, and the messages to the caller's log.
#include "tests/unit/runtime/session/served_plan.h"

#include <mutex>
#include <stdexcept>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class SessionHealth : public ServedPlanTest {
protected:
  SessionOptions withLog(SessionOptions options = {}) {
    options.log = [this](LogLevel level, std::string_view text) {
      const std::lock_guard lock(mutex_);
      constexpr std::string_view kNames[] = {"info: ", "warning: ", "error: "};
      messages_.push_back(std::string(kNames[size_t(level)]) + std::string(text));
    };
    return options;
  }
  /// The messages since the last call.
  std::vector<std::string> messages() {
    const std::lock_guard lock(mutex_);
    return std::exchange(messages_, {});
  }
  static uint64_t runsOf(const Session &session, const std::string &entry,
                         const std::string &inputs) {
    for (const BucketCount &bucket : session.stats().buckets)
      if (bucket.entry == entry && bucket.inputs == inputs)
        return bucket.runs;
    return UINT64_MAX;
  }

  const std::shared_ptr<const Plan> plan_ = toPlan(servedPlan());
  const bool onGpu_ = kTestDevice == DeviceKind::Cuda;

private:
  std::mutex mutex_;
  std::vector<std::string> messages_;
};

TEST_F(SessionHealth, CountsTheRunsOfEachBucket) {
  Session session = createSession(plan_);
  EXPECT_TRUE(run(session, "rows", {100, 4}).isOk()); // 64 + 16 + 16 + 4.
  EXPECT_TRUE(run(session, "mixed", {3, 4}).isOk());
  EXPECT_EQ(runsOf(session, "rows", "x=f32[16,4]"), 2u);
  EXPECT_EQ(runsOf(session, "rows", "x=f32[1,4]"), 0u);
  EXPECT_EQ(runsOf(session, "mixed", "x=f32[3,4]"), 1u);
  EXPECT_EQ(runsOf(session, "ids", "x=f32[4,4], ids=i64[4,3]"), 0u);
  EXPECT_EQ(session.stats().replays, onGpu_ ? 5u : 0u);
  EXPECT_FALSE(run(session, "mixed", {4, 4}).isOk()); // A request that fails has no runs.
  EXPECT_EQ(session.stats().bucketRuns, 5u);

  SamplePlan larger = servedPlan(); // The counts go on in a plan with other buckets.
  larger.plan.entries[0].buckets.erase(larger.plan.entries[0].buckets.begin());
  larger.plan.entries[0].buckets.push_back(sumBucket({128, 4}, 0));
  ASSERT_TRUE(session.update(toPlan(larger)).isOk());
  EXPECT_TRUE(run(session, "rows", {144, 4}).isOk()); // 128 + 16.
  EXPECT_EQ(runsOf(session, "rows", "x=f32[16,4]"), 3u);
  EXPECT_EQ(runsOf(session, "rows", "x=f32[128,4]"), 1u);
  EXPECT_EQ(runsOf(session, "rows", "x=f32[1,4]"), 0u);
  EXPECT_THAT(session.metrics("s"),
              HasSubstr("cgc_bucket_hits_total{session=\"s\",entry=\"rows\",inputs=\"x=f32[16,4]\"}"
                        " 3\n"));
}

TEST_F(SessionHealth, CountsAndTellsCaptures) {
  size_t buckets = 0;
  for (const Entry &entry : plan_->data().entries)
    buckets += entry.buckets.size();
  Session eager = createSession(plan_, withLog({.contexts = 2}));
  EXPECT_EQ(eager.stats().captures, onGpu_ ? 2 * buckets : 0);
  if (onGpu_) {
    const std::string text = "info: a context of GPU 0 captured " + std::to_string(buckets);
    EXPECT_THAT(messages(), ElementsAre(StartsWith(text), StartsWith(text)));
  }

  SessionOptions options = withLog();
  options.context.capture = CaptureTime::OnFirstUse;
  Session lazy = createSession(plan_, options);
  EXPECT_THAT(messages(), IsEmpty());
  EXPECT_EQ(lazy.stats().captures, 0u);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(run(lazy, "rows", {5, 4}).isOk()); // 4 + 1.
  EXPECT_EQ(lazy.stats().captures, onGpu_ ? 2u : 0u);
  EXPECT_TRUE(lazy.prepare("rows", 17).isOk()); // 16 + 1.
  EXPECT_EQ(lazy.stats().captures, onGpu_ ? 3u : 0u);
  EXPECT_TRUE(lazy.reserve("mixed", 2).isOk());
  EXPECT_EQ(lazy.stats().captures, onGpu_ ? 4u : 0u);
  if (onGpu_) {
    EXPECT_THAT(messages(), ElementsAre("info: a context of GPU 0 captured 2 buckets",
                                        "info: a context of GPU 0 captured 1 bucket",
                                        "info: a context of GPU 0 captured 1 bucket"));
  }
}

TEST_F(SessionHealth, TellsFailuresAtPowersOfTen) {
  Session session = createSession(plan_, withLog());
  messages();
  for (int i = 0; i < 150; ++i)
    EXPECT_FALSE(run(session, "none", {1, 4}).isOk());
  EXPECT_THAT(messages(),
              ElementsAre(StartsWith("warning: a request failed (usage, 1 so far): the plan has"),
                          StartsWith("warning: a request failed (usage, 10 so far)"),
                          StartsWith("warning: a request failed (usage, 100 so far)")));
  EXPECT_TRUE(session.healthy());
}

TEST_F(SessionHealth, TellsExchangesAndFallbacks) {
  provider_.methods = {{"rows", {}}, {"wide", {}}, {"columns", {}}, {"ids", {}}};
  provider_.methods["mixed"] = [](auto, auto, void *) { return Status::ok(); };
  SessionOptions options = withLog();
  options.fallbackModel = "model.pt";
  Session session = createSession(plan_, options);
  messages();
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(run(session, "mixed", {9, 4}).isOk());
  EXPECT_THAT(messages(), ElementsAre(HasSubstr("no bucket of entry 'mixed' takes (1 so far)"),
                                      HasSubstr("no bucket of entry 'mixed' takes (10 so far)")));
  EXPECT_TRUE(session.update(plan_).isOk());
  EXPECT_EQ(messages().back(), "info: another plan serves the requests now");
}

TEST_F(SessionHealth, ALogThatThrowsFailsNoRequest) {
  SessionOptions options;
  options.log = [](LogLevel, std::string_view) { throw std::runtime_error("full disk"); };
  Session session = createSession(plan_, options);
  EXPECT_EQ(run(session, "none", {1, 4}).status().code(), Code::Usage);
  EXPECT_EQ(*run(session, "rows", {3, 4}), expected({3, 4}));
}

} // namespace
} // namespace cgc::test
