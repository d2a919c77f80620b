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

TEST(PlanSummary, SaysWhichBatchesABucketServes) {
  PlanData plan = test::samplePlan().plan;
  auto &buckets = plan.entries[0].buckets;
  buckets[1].inputs[0].sizes[0] = 4;
  // Between 2.5 us and 5 us, 2 rows take 3.33 us.
  EXPECT_THAT(planText(plan, "p.cgplan", 10),
              HasSubstr("      1 row runs in 1, 2-4 in 4 (+50 %)\n"));
  buckets[0].inputs[0].sizes[0] = 3;
  EXPECT_THAT(planText(plan, "p.cgplan", 10), HasSubstr("      1-3 rows run in 3, 4 in 4\n"));
  // Buckets that differ in something else, and dependent rows.
  buckets[0].inputs[0].sizes[0] = 4;
  EXPECT_THAT(planText(plan, "p.cgplan", 10), Not(HasSubstr(" in 4")));
  buckets[0].inputs[0].sizes[0] = 1;
  plan.entries[0].rows.independent = false;
  EXPECT_THAT(planText(plan, "p.cgplan", 10), Not(HasSubstr(" in 4")));
}

TEST(PlanSummary, SaysWhatABatchIsAndWhetherRowsAreIndependent) {
  PlanData plan = test::samplePlan().plan;
  plan.entries[0].buckets[1].isMeasured = true;
  const std::string text = planText(plan, "p.cgplan", 10);
  EXPECT_THAT(text, HasSubstr("  batch:\n"
                              "    main: dimension 0 of x, 0 of y; rows are independent\n"
                              "      1 row runs in 1, 2 in 2\n"
                              "    fill: rows depend on each other: aten.fill at model.py:13 (the "
                              "model itself): it has no rows\n"));
  EXPECT_THAT(text, HasSubstr(" 2.5 "));
  EXPECT_THAT(text, HasSubstr(" 5.0 (measured) "));
  const auto json = planJson(plan, "p.cgplan", 10);
  EXPECT_EQ(json["entries"][0]["rows"].dump(), R"({"independent":true})");
  EXPECT_EQ(json["entries"][0]["buckets"][1]["inputs"][0]["batch_dim"], 0);
  EXPECT_EQ(json["entries"][0]["buckets"][1]["expected_us"], 5);
  EXPECT_EQ(json["entries"][0]["buckets"][1]["measured"], true);
  EXPECT_EQ(json["entries"][1]["rows"]["location"], "model.py:13 (the model itself)");
  EXPECT_FALSE(json["entries"][1]["buckets"][0]["outputs"][0].contains("batch_dim"));

  plan.entries[1].rows = {.reason = "no input has a dimension for a batch"};
  EXPECT_THAT(planText(plan, "p.cgplan", 10),
              HasSubstr("fill: rows may depend on each other: no input has a dimension"));
  plan.entries[1].rows = {};
  EXPECT_THAT(planText(plan, "p.cgplan", 10),
              HasSubstr("fill: rows may depend on each other: the compiler did not examine them"));
}

} // namespace
} // namespace cgc::tool
