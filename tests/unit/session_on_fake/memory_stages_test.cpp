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

TEST_F(MemoryOfStages, CountsGraphsWithThePeak) {
  const PlanMemory bytes = planMemory(plan_->data());
  size_t buckets = 0;
  for (const Entry &entry : plan_->data().entries)
    buckets += entry.buckets.size();
  constexpr uint64_t kExecBytes = 5000;
  fake_cuda::reset({.execBytes = kExecBytes});
  const auto memory = measure();
  ASSERT_TRUE(memory.isOk()) << memory.status().message();
  const uint64_t all = bytes.weights + bytes.arena + bytes.io + buckets * kExecBytes;
  EXPECT_EQ(memory->counted.graphs, buckets * kExecBytes);
  EXPECT_EQ(memory->counted.total(), all);
  EXPECT_EQ(memory->counted.peak, all);
  EXPECT_EQ(memory->stages[1].measured, all - buckets * kExecBytes);
  for (const size_t stage : {2, 3, 4})
    EXPECT_EQ(memory->stages[stage].measured, all) << memory->stages[stage].name;
}

TEST_F(MemoryOfStages, ThePeakStaysWhenMemoryIsFreed) {
  fake_cuda::reset({.execBytes = 5000});
  EngineOptions options{.provider = &provider_};
  options.pool = *MemoryPool::create({});
  const Result<Engine> engine = Engine::create(*plan_, options);
  ASSERT_TRUE(engine.isOk()) << engine.status().message();
  uint64_t peak = 0;
  {
    const Result<Context> first = Context::create(*engine), second = Context::create(*engine);
    ASSERT_TRUE(first.isOk() && second.isOk());
    const MemoryReport both = engine->memory();
    peak = both.peak;
    EXPECT_GT(both.graphs, 0u);
    EXPECT_EQ(peak, both.total());
    const PoolReport pool = options.pool->report();
    EXPECT_EQ(pool.sum.peak, pool.sum.total());
    EXPECT_EQ(pool.sum.graphs, both.graphs);
  }
  EXPECT_EQ(engine->memory().graphs, 0u);
  EXPECT_EQ(engine->memory().peak, peak);
  const PoolReport pool = options.pool->report();
  EXPECT_EQ(pool.models.at(0).memory.peak, peak);
  EXPECT_GT(pool.sum.peak, pool.sum.total());
  EXPECT_EQ(pool.sum.graphs, 0u);
}

TEST_F(MemoryOfStages, ThePeakOfASessionHasBothPlansOfAnUpdate) {
  fake_cuda::reset({.execBytes = 5000});
  for (const auto &pool : {std::shared_ptr<MemoryPool>(), *MemoryPool::create({})}) {
    SessionOptions options;
    options.engine.pool = pool;
    Session session = createSession(plan_, options);
    const MemoryReport before = session.memory();
    EXPECT_EQ(before.peak, before.total());
    ASSERT_TRUE(session.update(plan_).isOk());
    const MemoryReport after = session.memory();
    EXPECT_EQ(after.total(), before.total());
    // Both plans use the arena of a pool.
    EXPECT_EQ(after.peak, before.total() + after.total() - (pool ? before.arenas : 0));
    EXPECT_THAT(session.metrics("s"),
                HasSubstr("cgc_memory_peak_bytes{session=\"s\"} " + std::to_string(after.peak)));
  }
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
