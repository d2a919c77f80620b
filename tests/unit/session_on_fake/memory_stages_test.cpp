// measureMemory on the fake GPU, every byte of which is accounted for.
#include "tools/cgc/load/memory_stages.h"

#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/runtime/session/served_plan.h"

#include "runtime/plan/plan_memory.h"

namespace cgc::test {
namespace {

using testing::HasSubstr;

class MemoryOfStages : public ServedPlanTest {
protected:
  MemoryOfStages() { fake_cuda::reset(); }
  ~MemoryOfStages() override { fake_cuda::reset(); }

  Result<tool::MemoryStages> measure() {
    return tool::measureMemory(*plan_, {.provider = &provider_}, 2);
  }

  const std::shared_ptr<const Plan> plan_ = toPlan(servedPlan());
};

TEST_F(MemoryOfStages, MeasuresWhatThePlanPredicts) {
  const PlanMemory bytes = planMemory(plan_->data());
  const auto memory = measure();
  ASSERT_TRUE(memory.isOk()) << memory.status().message();
  ASSERT_EQ(memory->stages.size(), 5u);
  for (const auto &[name, predicted, rounded, measured] : memory->stages) {
    const bool isReady = std::string(name) == "model ready";
    EXPECT_EQ(predicted, bytes.weights + (isReady ? 0 : bytes.arena + bytes.io)) << name;
    EXPECT_EQ(rounded, 2u << 20) << name; // All buffers are small.
    const bool hasGraphs = std::string(name) != "static inputs" && !isReady;
    EXPECT_EQ(measured, predicted + (hasGraphs ? memory->counted.graphs : 0)) << name;
  }
  EXPECT_EQ(memory->counted.weights, bytes.weights);
}

TEST_F(MemoryOfStages, RoundsToTheBlocksOfCuda) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(tool::cudaMallocBytes({}), 0u);
  EXPECT_EQ(tool::cudaMallocBytes({0, 1, kMiB - 1}), 2 * kMiB); // One block.
  EXPECT_EQ(tool::cudaMallocBytes({kMiB - 1, kMiB - 1, kMiB - 1}), 4 * kMiB);
  EXPECT_EQ(tool::cudaMallocBytes({kMiB, kMiB, 2 * kMiB, 2 * kMiB + 1, 5}), 12 * kMiB);
}

TEST_F(MemoryOfStages, SaysWhatFails) {
  fake_cuda::failCall("cudaGraphLaunch", 1, cudaErrorInvalidValue);
  EXPECT_THAT(measure().status().message(), HasSubstr("cudaErrorInvalidValue"));
  fake_cuda::reset({.devices = 1, .deviceBytes = 1000});
  EXPECT_EQ(measure().status().code(), Code::OutOfMemory);
}

} // namespace
} // namespace cgc::test
