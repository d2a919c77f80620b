// A plan that is written and read again is equal; equal plans give equal bytes.
#include "runtime/plan/plan_file.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace cgc::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Clears the fields that the writer sets, which comparisons ignore.
PlanData withoutPlaces(PlanData plan) {
  for (Weight &weight : plan.weights)
    weight.fileOffset = weight.hash = 0;
  return plan;
}

void expectRoundTrip(const SamplePlan &sample, const std::string &path) {
  const Status written = writePlan(sample.plan, sample.weightSpans(), path);
  ASSERT_TRUE(written.isOk()) << written.message();
  for (Plan::Verify verify : {Plan::Verify::Full, Plan::Verify::Metadata}) {
    Result<Plan> plan = Plan::load(path, verify);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    EXPECT_EQ(withoutPlaces(plan->data()), sample.plan);
    EXPECT_EQ(toText(plan->data()), toText(sample.plan));
    EXPECT_EQ(plan->fileBytes(), std::filesystem::file_size(path));
    for (size_t i = 0; i < sample.weights.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(plan->weightBytes(i), sample.weights[i])) << "weight " << i;
      EXPECT_EQ(plan->data().weights[i].fileOffset % kBufferAlignment, 0u);
    }
  }
}

TEST(PlanRoundTrip, HandWrittenPlans) {
  const TempFolder folder;
  expectRoundTrip(samplePlan(), folder / "cpu.cgplan");
  expectRoundTrip(cudaSamplePlan(), folder / "cuda.cgplan");
  expectRoundTrip(opLibraryPlan(DeviceKind::Cpu, {"libops.so", 0xfedcba9876543210u}, "test.op"),
                  folder / "library.cgplan");
}

TEST(PlanRoundTrip, TheSignOfZeroSurvives) {
  const TempFolder folder;
  const SamplePlan sample = cudaSamplePlan();
  ASSERT_TRUE(writePlan(sample.plan, sample.weightSpans(), folder / "p").isOk());
  const Result<Plan> plan = Plan::load(folder / "p");
  ASSERT_TRUE(plan.isOk());
  const auto &records = plan->data().entries[0].buckets[0].records;
  EXPECT_TRUE(std::signbit(std::get<KernelLaunch>(records[2].op).floats[0]));
  EXPECT_TRUE(std::signbit(std::get<double>(std::get<AtenCall>(records[4].op).args[4])));
}

TEST(PlanRoundTrip, RandomPlans) {
  const TempFolder folder;
  for (unsigned seed = 0; seed < 200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    expectRoundTrip(randomPlan(seed), folder / "plan");
  }
}

TEST(PlanRoundTrip, SamePlanSameBytes) {
  const TempFolder folder;
  const SamplePlan sample = cudaSamplePlan(), again = cudaSamplePlan();
  ASSERT_TRUE(writePlan(sample.plan, sample.weightSpans(), folder / "a").isOk());
  ASSERT_TRUE(writePlan(again.plan, again.weightSpans(), folder / "b").isOk());
  EXPECT_EQ(readFile(folder / "a"), readFile(folder / "b"));
  // A plan that was read may be written again.
  const Result<Plan> plan = Plan::load(folder / "a");
  ASSERT_TRUE(plan.isOk());
  ASSERT_TRUE(writePlan(plan->data(), sample.weightSpans(), folder / "c").isOk());
  EXPECT_EQ(readFile(folder / "a"), readFile(folder / "c"));
}

TEST(PlanRoundTrip, AnInvalidPlanIsNotWritten) {
  const TempFolder folder;
  SamplePlan sample = samplePlan();
  sample.plan.entries[0].buckets[0].arenaBytes = 1;
  const Status status = writePlan(sample.plan, sample.weightSpans(), folder / "out");
  EXPECT_THAT(status.message(), HasSubstr("invalid plan"));
  EXPECT_THAT(folder.list(), IsEmpty());
}

TEST(PlanRoundTrip, APlanInMemoryNeedsNoFile) {
  SamplePlan sample = samplePlan();
  Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ(plan->data(), sample.plan);
  EXPECT_TRUE(std::ranges::equal(plan->weightBytes(0), sample.weights[0]));
  sample.plan.entries.clear();
  EXPECT_FALSE(Plan::fromMemory(sample.plan, sample.weights).isOk());
}

TEST(PlanText, ListsWeightsTensorsAndRecords) {
  const std::string text = toText(cudaSamplePlan().plan);
  for (const char *part :
       {"plan target=cuda producer=\"test\" precision=f32 tf32 gpu=\"Some GPU\" sms=7 tuned\n",
        "weight 0 \"w\" f32[4]\n", "weight 1 \"unused\" u8[3] computed\n",
        "entry \"main\" bucket 1 (x: f32[2,4]) -> (y: f32[2,4]) arena=512",
        "  t3: f32[2,4] @ arena+256\n",
        "  t1 = aten::neg.out(t0)  loc(\"model.py\":12 \"visual.ln\")",
        "  t3 = aten::add.Tensor(t1, t2, 1) copy",
        "  t3 = kernel some_kernel(t1, none) ints=[-1, 7] floats=[-0, 1e-05] "
        "grid=1,2,3 block=32,4,2 "
        "shared=1024 abi=0xfedcba9876543210",
        "some_library.some_function(t1, t2) ints=[1] floats=[0.5] algorithm=2B",
        "aten::some_op(none, t1, [t2, none], -3, -0.0, true, \"tanh "
        "\\\"x\\\"\\x0a\", bf16, device, "
        "[1, -2], [0.25, -0], [], [], \"\") copy",
        "  t4 = memcpy(t3)\n", "  t0 = memset(7)\n"})
    EXPECT_THAT(text, HasSubstr(part));
}

} // namespace
} // namespace cgc::test
