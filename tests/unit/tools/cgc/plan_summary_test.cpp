// Tests of the plan summary: sizes of a plan with several buckets, in text and JSON.
#include "tools/cgc/report/plan_summary.h"

#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace cgc::tool {
namespace {

using testing::HasSubstr;

/// Buckets share one arena, so its size is that of the largest bucket.
TEST(PlanSummary, ArenaIsTheLargestOfAllBuckets) {
  PlanData plan = test::samplePlan().plan;
  plan.entries[0].buckets[0].arenaBytes = 3000;
  plan.entries[0].buckets[1].arenaBytes = 2000;
  const auto json = planJson(plan, "p.cgplan", 10);
  EXPECT_EQ(json["arena_bytes"], 3000);
  EXPECT_EQ(json["entries"][0]["buckets"][0]["arena_bytes"], 3000);
  EXPECT_EQ(json["entries"][0]["buckets"][1]["arena_bytes"], 2000);
  EXPECT_EQ(json["weight_bytes"], 19) << "16 and 3";
  EXPECT_THAT(planText(plan, "p.cgplan", 10), HasSubstr("2 weights, 19 B; arena 3.0 kB"));
}

} // namespace
} // namespace cgc::tool
