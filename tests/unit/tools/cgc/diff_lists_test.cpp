// Tests of diff lists of plans: the facts about a plan, and which buckets correspond.
#include "tools/cgc/diff/diff_lists.h"

#include "tests/unit/runtime/sample_plan.h"

#include "gmock/gmock.h"

namespace cgc::tool {
namespace {

using testing::ElementsAre;
using testing::Key;
using testing::Pair;

TEST(DiffLists, ThePlansGpuAndLibrariesAreFacts) {
  PlanData plan = test::samplePlan().plan;
  EXPECT_EQ(diffListsOf(plan).facts.count("gpu"), 0u);
  plan.gpu = {"NVIDIA H200", 132, false};
  plan.opLibraries = {{"libacme.so", 0xabc}};
  plan.tf32 = true;
  const auto facts = diffListsOf(plan).facts;
  EXPECT_THAT(facts, testing::Contains(Pair("gpu", "NVIDIA H200, 132 SMs, not tuned")));
  EXPECT_THAT(facts, testing::Contains(Pair("op library libacme.so", "0000000000000abc")));
  EXPECT_THAT(facts, testing::Contains(Pair("precision", "tf32")));
}

TEST(DiffLists, BucketsAreCalledByTheShapesOfTheirInputs) {
  PlanData plan = test::samplePlan().plan;
  const auto before = diffListsOf(plan);
  EXPECT_THAT(before.lists,
              ElementsAre(Key("entry fill"), Key("entry main, x[1,4]"), Key("entry main, x[2,4]")));
  // Neither the order of the buckets nor further buckets of the entry matter.
  auto &buckets = plan.entries.front().buckets;
  buckets.erase(buckets.begin());
  EXPECT_THAT(diffListsOf(plan).lists, ElementsAre(Key("entry fill"), Key("entry main, x[2,4]")));
  EXPECT_EQ(diffListsOf(plan).facts.at("arena of entry main, x[2,4]"),
            before.facts.at("arena of entry main, x[2,4]"));
}

} // namespace
} // namespace cgc::tool
