// The tuner on the fake GPU: a training plan is timed from its first states and keeps them.
#include "runtime/plan/gemm_call.h"
#include "tests/op_library_files.h"
#include "tests/unit/fake_device/context_fixture.h"
#include "tests/unit/runtime/training_plan.h"
#include "tuner/tuner.h"

#include <algorithm>

namespace cgc::test {
namespace {

/// trainingPlan(), whose step also multiplies its input by the transposed parameter.
SamplePlan planWithGemm() {
  SamplePlan sample = trainingPlan(DeviceKind::Cuda);
  Bucket &step = sample.plan.entries[0].buckets[0];
  const auto add = [&](TensorRef tensor) {
    step.tensors.push_back(std::move(tensor));
    return TensorId(step.tensors.size() - 1);
  };
  const TensorId x = add(dense(BufferKind::Input, 0, 0, DType::F32, {2, 2})),
                 w = add({{BufferKind::State, 0, 0}, DType::F32, {2, 2}, {1, 2}}),
                 y = add(dense(BufferKind::Arena, 0, 256, DType::F32, {2, 2})),
                 workspace = add(dense(BufferKind::Arena, 0, 512, DType::U8, {256}));
  step.arenaBytes = 768;
  step.records.insert(
      step.records.begin(),
      LaunchRecord{libraryCall({.x = x, .weight = w, .d = y, .workspace = workspace})});
  return sample;
}

TEST(TuneOnFake, TimesATrainingPlanFromItsFirstStates) {
  fake_cuda::reset();
  FakeProvider provider;
  provider.ops = trainingOps(enqueue);
  int64_t runs = 0, mostSteps = 0;
  provider.ops["aten::count"] = [&](const FakeCall &f, void *stream) {
    const auto *before = static_cast<const int64_t *>(f.arguments[0]);
    auto *after = static_cast<int64_t *>(f.outputs[0]);
    return enqueue(stream, [&, before, after] {
      *after = *before + 1;
      mostSteps = std::max(mostSteps, *after);
      ++runs;
    });
  };
  const SamplePlan sample = planWithGemm();
  const Plan plan = *Plan::fromMemory(sample.plan, sample.weights);
  EngineOptions options;
  options.provider = &provider;
  options.cublasLtPath = builtLibrary("libcgc_test_cublaslt.so");
  const Result<tuner::Tuned> tuned = tuner::tune(plan, options);
  ASSERT_TRUE(tuned.isOk()) << tuned.status().message();

  ASSERT_EQ(tuned->gemms.size(), 1u);
  EXPECT_EQ(tuned->gemms[0].description, "gemm f32 [2,2] x [2,2] transposed");
  EXPECT_EQ(tuned->gemms[0].tried, 1u);
  const PlanData &after = tuned->plan;
  EXPECT_FALSE(std::get<LibraryCall>(after.entries[0].buckets[0].records[0].op).algorithm.empty());
  EXPECT_EQ(after.states, sample.plan.states);
  for (const Entry &entry : after.entries)
    EXPECT_TRUE(entry.buckets[0].isMeasured) << entry.name;
  EXPECT_GT(runs, 50);
  EXPECT_LT(mostSteps, 10) << "each sample begins with the first states";
  fake_cuda::reset();
}

} // namespace
} // namespace cgc::test
