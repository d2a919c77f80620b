// Trainer: checkpoints of plans that name a GPU, as only plans with target cuda do.
#include "tests/unit/runtime/train/trained_plan.h"

namespace cgc::test {
namespace {

/// The kernels and launch shapes of a plan are part of it, and the name of the GPU that they were
/// chosen for is not.
TEST_F(TrainedPlan, ACheckpointIsForEachGpu) {
  SamplePlan sample = trainingPlan(kTestDevice);
  const auto create = [&](std::optional<TargetGpu> gpu) {
    sample.plan.gpu = std::move(gpu);
    return TrainedPlan::create(planOf(sample));
  };
  Result<Trainer> writer = create(TargetGpu{"NVIDIA H200", 132, true});
  ASSERT_TRUE(writer.isOk()) << writer.status().message();
  ASSERT_TRUE(writer->save(folder_ / "run").isOk());
  for (const std::optional<TargetGpu> &gpu :
       {std::optional<TargetGpu>(), std::optional(TargetGpu{"NVIDIA A100", 108, false})}) {
    Result<Trainer> reader = create(gpu);
    ASSERT_TRUE(reader.isOk()) << reader.status().message();
    const auto loaded = reader->load(folder_ / "run");
    EXPECT_TRUE(loaded.isOk()) << loaded.status().message();
  }
}

} // namespace
} // namespace cgc::test
