// RequestMix: the syntax of --mix, the kinds of requests, how often each is picked, and arrivals.
#include "tools/cgc/load/arrivals.h"
#include "tools/cgc/load/request_mix.h"

#include "tests/unit/runtime/session/served_plan.h"

namespace cgc::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RequestMix, IsBatchesWithWeights) {
  const auto mix = parseMix("1:70,4:20.5,64:10");
  ASSERT_TRUE(mix.isOk()) << mix.status().message();
  ASSERT_EQ(mix->size(), 3u);
  EXPECT_EQ((*mix)[1].batch, 4);
  EXPECT_EQ((*mix)[1].weight, 20.5);
  for (const char *text :
       {"", "1", "1:", ":1", "1:0", "1:-1", "0:1", "1:1,", "1:nan", "1:inf", "x:1", "2000000:1"})
    EXPECT_THAT(parseMix(text).status().message(),
                HasSubstr(std::string("such as 1:70,4:20,64:10, got '") + text + "'"));
  EXPECT_THAT(parseMix("1:2,1:3").status().message(), HasSubstr("batch 1 is given twice"));
}

TEST(RequestMix, WithoutAMixEachBucketIsAKind) {
  const test::SamplePlan sample = test::servedPlan();
  const auto kinds = requestKinds(sample.plan, {.entries = {"rows", "columns"}}, {});
  ASSERT_TRUE(kinds.isOk()) << kinds.status().message();
  std::vector<int64_t> rows;
  for (const RequestKind &kind : *kinds)
    rows.push_back(kind.rows);
  EXPECT_THAT(rows, ElementsAre(1, 4, 16, 64, 2, 5));
}

TEST(RequestMix, TakesTheSizesOfTheFirstBucketAndTheBatchOfTheMix) {
  const test::SamplePlan sample = test::servedPlan();
  const auto kinds =
      requestKinds(sample.plan, {.entries = {"rows", "columns"}}, {{7, 1}, {100, 3}});
  ASSERT_TRUE(kinds.isOk()) << kinds.status().message();
  ASSERT_EQ(kinds->size(), 4u);
  EXPECT_THAT((*kinds)[1].inputs[0].sizes, ElementsAre(100, 4));
  EXPECT_THAT((*kinds)[1].outputs[0].sizes, ElementsAre(100, 4));
  EXPECT_THAT((*kinds)[2].inputs[0].sizes, ElementsAre(3, 7, 4)); // The batch is in the middle.
  EXPECT_EQ((*kinds)[3].rows, 100);
  EXPECT_EQ((*kinds)[3].weight, 3);
}

TEST(RequestMix, DependentRowsNeedABucketOfTheBatch) {
  const test::SamplePlan sample = test::servedPlan();
  const auto kinds = requestKinds(sample.plan, {.entries = {"mixed"}}, {{3, 1}});
  ASSERT_TRUE(kinds.isOk()) << kinds.status().message();
  EXPECT_THAT(kinds->front().inputs[0].sizes, ElementsAre(3, 4));
  const Status refused = requestKinds(sample.plan, {.entries = {"mixed"}}, {{4, 1}}).status();
  EXPECT_EQ(refused.code(), Code::Usage);
  EXPECT_THAT(refused.message(), HasSubstr("--mix 4:1"));
  EXPECT_EQ(requestKinds(sample.plan, {.entries = {"none"}}, {}).status().code(), Code::Usage);
}

TEST(RequestMix, KindsArePickedByWeight) {
  std::vector<RequestKind> kinds(3);
  kinds[0].weight = 70, kinds[1].weight = 20, kinds[2].weight = 10;
  KindPicker picker(kinds, 1), same(kinds, 1);
  std::array<int, 3> counts = {};
  for (int i = 0; i < 10'000; ++i) {
    const size_t kind = picker.next();
    EXPECT_EQ(kind, same.next());
    ++counts[kind];
  }
  EXPECT_NEAR(counts[0], 7000, 300);
  EXPECT_NEAR(counts[1], 2000, 300);
}

TEST(RequestMix, TheLargestWeightsDoNotOverflow) {
  const auto mix = parseMix("1:1.7e308,4:1.7e308,16:1e-308");
  ASSERT_TRUE(mix.isOk()) << mix.status().message();
  const auto kinds = requestKinds(test::servedPlan().plan, {.entries = {"rows"}}, *mix);
  ASSERT_TRUE(kinds.isOk()) << kinds.status().message();
  KindPicker picker(*kinds, 1);
  std::array<int, 3> counts = {};
  for (int i = 0; i < 10'000; ++i)
    ++counts[picker.next()];
  EXPECT_NEAR(counts[0], 5000, 300);
  EXPECT_NEAR(counts[1], 5000, 300);
}

TEST(Arrivals, OfAnOpenLoopAreScheduledWhetherOrNotAClientTakesThem) {
  std::vector<RequestKind> kinds(1);
  kinds[0].weight = 1;
  // The time is over, so that all requests that would have arrived are the backlog.
  Arrivals late(kinds, 1000, Clock::now() - std::chrono::seconds(10), 10);
  EXPECT_FALSE(late.next());
  EXPECT_NEAR(double(late.backlog()), 10'000, 500);
  // The times of arrivals do not depend on when they are taken.
  const auto start = Clock::now() + std::chrono::hours(1);
  Arrivals early(kinds, 1000, start, 0.1);
  Clock::time_point last = start;
  uint64_t count = 0;
  for (; const auto arrival = early.next(); ++count) {
    EXPECT_GE(arrival->due, last);
    last = arrival->due;
  }
  EXPECT_LT(last, start + std::chrono::milliseconds(100));
  EXPECT_NEAR(double(count), 100, 40);
  EXPECT_EQ(early.backlog(), 0u);
}

TEST(Arrivals, OfAClosedLoopAreNow) {
  std::vector<RequestKind> kinds(1);
  kinds[0].weight = 1;
  Arrivals arrivals(kinds, 0, Clock::now(), 3600);
  const auto before = Clock::now();
  const auto arrival = arrivals.next();
  ASSERT_TRUE(arrival);
  EXPECT_GE(arrival->due, before);
  EXPECT_LE(arrival->due, Clock::now());
  Arrivals over(kinds, 0, before - std::chrono::seconds(2), 1);
  EXPECT_FALSE(over.next());
  EXPECT_EQ(over.backlog(), 0u);
}

} // namespace
} // namespace cgc::tool
