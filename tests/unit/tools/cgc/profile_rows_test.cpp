// Tests of ProfileRows: the median time of each record, and the groups of records.
#include "tools/cgc/report/profile_rows.h"

#include <gtest/gtest.h>

namespace cgc::tool {
namespace {

TEST(ProfileRows, HaveTheMedianOfEachRecord) {
  PlanData plan;
  plan.locations = {{.file = "m.py", .line = 7, .module = "visual.proj"}};
  Bucket bucket;
  bucket.records = {{.op = AtenCall{.op = "aten::exp"}, .location = LocationId(0)},
                    {.op = AtenCall{.op = "aten::neg"}},
                    {.op = AtenCall{.op = "aten::exp"}, .location = LocationId(0)}};
  const auto rows = profileRows(plan, bucket, {{5, 1, 900, 2, 3}, {20, 10, 30}, {4, 4, 4}});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].op, "aten::exp");
  EXPECT_EQ(rows[0].module, "visual.proj");
  EXPECT_EQ(rows[0].source, "m.py:7");
  EXPECT_EQ(rows[0].micros, 3);
  EXPECT_EQ(rows[1].module, "");
  EXPECT_EQ(rows[1].source, "");
  EXPECT_EQ(rows[1].micros, 20);
  EXPECT_EQ(rows[2].micros, 4);
}

TEST(ProfileRows, AreGroupedByOpAndByLine) {
  const std::vector<ProfileRow> rows = {{"exp", "a", "m.py:1", 1},
                                        {"neg", "a", "m.py:2", 5},
                                        {"exp", "b", "m.py:1", 2},
                                        {"exp", "a", "m.py:1", 3}};
  const auto ops = groupRows(rows, /*byModule=*/false);
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].name, "exp");
  EXPECT_EQ(ops[0].records, 3u);
  EXPECT_EQ(ops[0].micros, 6);
  EXPECT_EQ(ops[1].name, "neg");
  const auto lines = groupRows(rows, /*byModule=*/true);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].source, "m.py:2");
  EXPECT_EQ(lines[1].name, "a");
  EXPECT_EQ(lines[1].source, "m.py:1");
  EXPECT_EQ(lines[1].records, 2u);
  EXPECT_EQ(lines[1].micros, 4);
  EXPECT_EQ(lines[2].name, "b");
}

} // namespace
} // namespace cgc::tool
