// Tests of timing: quantiles of given samples, and the calls that timeRuns makes; no test measures
// time.
#include "tools/cgc/verbs/timing.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <numeric>

namespace cgc::tool {
namespace {

TEST(Samples, AQuantileIsTheSmallestThatThisShareDoesNotExceed) {
  Samples samples;
  for (int i = 0; i < 100; ++i)
    samples.add((i * 37) % 100 + 1); // 1 to 100, in another order.
  EXPECT_EQ(samples.quantile(0), 1);
  EXPECT_EQ(samples.quantile(0.01), 1);
  EXPECT_EQ(samples.quantile(0.011), 2);
  EXPECT_EQ(samples.quantile(0.5), 50);
  EXPECT_EQ(samples.quantile(0.9), 90);
  EXPECT_EQ(samples.quantile(0.99), 99);
  EXPECT_EQ(samples.quantile(1), 100);
  EXPECT_EQ(samples.median(), 50);
}

TEST(Samples, MedianOfAnOddNumberIsTheMiddle) {
  EXPECT_EQ(Samples({9, 1, 5}).median(), 5);
  EXPECT_EQ(Samples({7}).median(), 7);
}

TEST(Samples, JsonHasTheFourFigures) {
  std::vector<double> values(200);
  std::iota(values.begin(), values.end(), 1);
  EXPECT_EQ(Samples(values).json().dump(), R"({"min":1.0,"median":100.0,"p90":180.0,"p99":198.0})");
}

/// A series of back-to-back runs ends with one wait; a run alone has a wait of its own.
TEST(TimeRuns, TakesSoManySamplesOfEachFigure) {
  std::string calls;
  const auto timing = timeRuns([&] { return calls += 'r', Status::ok(); },
                               [&] { return calls += 'w', Status::ok(); }, 30);
  ASSERT_TRUE(timing.isOk());
  ASSERT_GE(timing->runsPerSample, 1);
  std::string measured;
  for (int i = 0; i < 30; ++i)
    measured += "rw";
  for (int i = 0; i < 30; ++i)
    measured += std::string(size_t(timing->runsPerSample), 'r') + "w";
  ASSERT_GT(calls.size(), measured.size());
  const std::string warmUp = calls.substr(0, calls.size() - measured.size());
  EXPECT_EQ(calls.substr(warmUp.size()), measured);
  EXPECT_GE(warmUp.size(), 4u) << "at least three runs and a wait";
  EXPECT_EQ(warmUp, std::string(warmUp.size() - 1, 'r') + "w");
}

TEST(TimeRuns, EndsWithTheFirstError) {
  for (const bool waits : {false, true}) {
    int runs = 0;
    const auto fail = [] { return Status(Code::Device, "gone"); };
    const auto run = [&] { return ++runs, waits ? Status::ok() : fail(); };
    const auto timing = timeRuns(run, [&] { return fail(); }, 30);
    EXPECT_EQ(timing.status().code(), Code::Device);
    EXPECT_LE(runs, 20);
  }
}

} // namespace
} // namespace cgc::tool
