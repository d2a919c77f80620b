// withMemoryBreakdown: an OutOfMemory status lists the memory that the plan needs.
#include "runtime/exec/engine_impl.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(MemoryBreakdown, SaysWhatWeightsArenaInputsAndOutputsTake) {
  SamplePlan sample = samplePlan();
  // Buckets share one arena of the largest size; each has its own inputs and outputs.
  sample.plan.entries[0].buckets[0].arenaBytes = 3'000'000;
  sample.plan.entries[0].buckets[1].arenaBytes = 5'000'000;
  const TempFolder folder;
  ASSERT_TRUE(writePlan(sample.plan, sample.weightSpans(), folder / "plan").isOk());
  const Result<Plan> plan = Plan::load(folder / "plan");
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  const Status extended =
      withMemoryBreakdown({Code::OutOfMemory, "no room"}, *plan, DeviceKind::Cpu);
  EXPECT_EQ(extended.code(), Code::OutOfMemory);
  // Weights of 16 and 3 bytes, the second at offset 256. Inputs of 16 and 32 bytes; outputs of 16,
  // 32 and 4 bytes.
  EXPECT_THAT(extended.message(),
              AllOf(HasSubstr("no room; "), HasSubstr("259 bytes for weights"),
                    HasSubstr("5.00 MB for the arena"), HasSubstr("100 bytes for inputs")));
  EXPECT_EQ(withMemoryBreakdown({Code::Device, "no GPU"}, *plan, DeviceKind::Cpu).message(),
            "no GPU");
}

} // namespace
} // namespace cgc::test
