// Tests of the table of bench --table: the time of a number of calls, and the break-even point.
#include "tools/cgc/report/bench_table.h"

#include <gtest/gtest.h>

namespace cgc::tool {
namespace {

TEST(BenchTable, LoadingCountsOnce) {
  const auto rows = tableRows({.eager = 5, .plan = 1, .once = 400});
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].times, 1);
  EXPECT_DOUBLE_EQ(rows[0].eagerSeconds, 0.005);
  EXPECT_DOUBLE_EQ(rows[0].planSeconds, 0.401);
  EXPECT_DOUBLE_EQ(rows[0].savedPercent, -7920);
  EXPECT_EQ(rows[1].times, 100);
  EXPECT_DOUBLE_EQ(rows[1].eagerSeconds, 0.5);
  EXPECT_DOUBLE_EQ(rows[1].planSeconds, 0.5);
  EXPECT_DOUBLE_EQ(rows[1].savedPercent, 0);
  EXPECT_EQ(rows[3].times, 10000);
  EXPECT_DOUBLE_EQ(rows[3].planSeconds, 10.4);
  EXPECT_DOUBLE_EQ(rows[3].savedPercent, 79.2);
}

TEST(BenchTable, BreakEvenIsTheFirstCallThatPays) {
  EXPECT_EQ(breakEvenCalls({.eager = 5, .plan = 1, .once = 400}), 101) << "100 calls are even";
  EXPECT_EQ(breakEvenCalls({.eager = 5, .plan = 1, .once = 399}), 100);
  EXPECT_EQ(breakEvenCalls({.eager = 5, .plan = 1, .once = 0}), 1);
  EXPECT_FALSE(breakEvenCalls({.eager = 1, .plan = 1, .once = 1}));
  EXPECT_FALSE(breakEvenCalls({.eager = 1, .plan = 2, .once = 0}));
}

} // namespace
} // namespace cgc::tool
