// The reference executor without LibTorch: a cuda plan runs on the host, and what the executor
// cannot run is refused by name before anything runs.
#include "runtime/exec/engine.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/rowwise/softmax.h"
#include "tests/paths.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/fake_provider.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

/// y = clone(softmax(x)) for each row of x [rows,4], and three bytes of 5, for 1 and 3 rows: a
/// kernel, a memcpy, an ATen record and a memset.
SamplePlan softmaxPlan() {
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cuda;
  plan.producer = "test";
  plan.locations = {{"model.py", 40, "visual.softmax"}, {"model.py", 41, "visual.copy"}};
  Entry main{.name = "main", .buckets = {}};
  const Kernel &softmax = *findKernel("softmax_f32");
  for (const int64_t rows : {1, 3}) {
    const std::vector<int64_t> sizes = {rows, 4};
    Bucket bucket;
    bucket.inputs = {{"x", DType::F32, sizes}};
    bucket.outputs = {{"y", DType::F32, sizes}, {"flags", DType::U8, {3}}};
    bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, sizes),
                      dense(BufferKind::Arena, 0, 0, DType::F32, sizes),
                      dense(BufferKind::Arena, 0, 256, DType::F32, sizes),
                      dense(BufferKind::Output, 0, 0, DType::F32, sizes),
                      dense(BufferKind::Output, 1, 0, DType::U8, {3})};
    bucket.arenaBytes = 512;
    KernelLaunch launch;
    launch.kernel = softmax.name;
    launch.abiHash = softmax.abiHash;
    launch.grid[0] = uint32_t(softmaxBlocks(rows, 4));
    launch.block[0] = kSoftmaxThreads;
    launch.reads = {id(0)};
    launch.writes = {id(1)};
    AtenCall clone;
    clone.op = "aten::clone";
    clone.args = {id(2)};
    clone.outputs = {id(3)};
    bucket.records = {{launch, LocationId(0)},
                      {Memcpy{id(1), id(2)}},
                      {clone, LocationId(1)},
                      {Memset{id(4), 5}}};
    main.buckets.push_back(bucket);
  }
  plan.entries = {main};
  return sample;
}

Status cloneOnHost(const FakeCall &f, void *) {
  std::memcpy(f.outputs[0], f.arguments[0], f.elements(f.call.outputs[0]) * sizeof(float));
  return Status::ok();
}

class ReferenceExecutor : public testing::Test {
protected:
  ReferenceExecutor() { provider_.ops = {{"aten::clone", cloneOnHost}}; }

  EngineOptions options() {
    EngineOptions options;
    options.executor = ExecutorKind::Reference;
    options.provider = &provider_;
    return options;
  }

  /// The error of creating an engine and a context, which binds every record.
  Status refusal(const SamplePlan &sample, const EngineOptions &options) {
    const Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
    EXPECT_TRUE(plan.isOk()) << plan.status().message();
    const Result<Engine> engine = Engine::create(*plan, options);
    const Status status = engine.isOk() ? Context::create(*engine).status() : engine.status();
    EXPECT_EQ(provider_.runs, 0);
    return status;
  }

  FakeProvider provider_;
  const TempFolder folder_;
};

TEST_F(ReferenceExecutor, RunsEveryKindOfRecordOnTheHost) {
  const SamplePlan sample = softmaxPlan();
  const Plan plan = *Plan::fromMemory(sample.plan, sample.weights);
  for (const bool separate : {false, true}) {
    EngineOptions engineOptions = options();
    engineOptions.separateBuffers = separate;
    const Result<Engine> engine = Engine::create(plan, engineOptions);
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    Result<Context> context = Context::create(*engine, {.threads = 2, .poisonArena = true});
    ASSERT_TRUE(context.isOk()) << context.status().message();
    for (const int64_t rows : {3, 1, 3}) {
      std::vector<float> x(rows * 4), y(rows * 4);
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = float(i % 5);
      std::vector<uint8_t> flags(3);
      const std::vector<int64_t> sizes = {rows, 4}, flagSizes = {3};
      const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
      const TensorView out[] = {{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
                                {flags.data(), DType::U8, DeviceKind::Cpu, flagSizes, {}}};
      const Status status = context->run("main", {&in, 1}, out);
      ASSERT_TRUE(status.isOk()) << status.message();
      for (int64_t row = 0; row < rows; ++row) {
        double sum = 0;
        for (int64_t i = 0; i < 4; ++i)
          sum += std::exp(x[row * 4 + i]);
        for (int64_t i = 0; i < 4; ++i)
          EXPECT_NEAR(y[row * 4 + i], std::exp(x[row * 4 + i]) / sum, 1e-6);
      }
      EXPECT_THAT(flags, Each(5));
    }
    EXPECT_EQ(context->stats("main", 0)->graphNodes, 0u);
  }
}

TEST_F(ReferenceExecutor, RefusesDeviceMemory) {
  const SamplePlan sample = softmaxPlan();
  const Plan plan = *Plan::fromMemory(sample.plan, sample.weights);
  const Result<Engine> engine = Engine::create(plan, options());
  ASSERT_TRUE(engine.isOk()) << engine.status().message();
  Result<Context> context = Context::create(*engine);
  ASSERT_TRUE(context.isOk()) << context.status().message();
  std::vector<float> x(4);
  const std::vector<int64_t> sizes = {1, 4}, flagSizes = {3};
  const TensorView in{x.data(), DType::F32, DeviceKind::Cuda, sizes, {}};
  const TensorView out[] = {{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
                            {x.data(), DType::U8, DeviceKind::Cpu, flagSizes, {}}};
  EXPECT_EQ(context->run("main", {&in, 1}, out).code(), Code::Usage);
}

TEST_F(ReferenceExecutor, IsNoExecutorOfACpuPlan) {
  const Status status = refusal(samplePlan(), options());
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("this plan's is cpu"));
}

TEST_F(ReferenceExecutor, IsForTheContextsOfItsEngine) {
  const SamplePlan sample = softmaxPlan();
  const Plan plan = *Plan::fromMemory(sample.plan, sample.weights);
  const Result<Engine> engine = Engine::create(plan, options());
  ASSERT_TRUE(engine.isOk()) << engine.status().message();
  for (const ExecutorKind other : {ExecutorKind::Stream, ExecutorKind::Graph}) {
    const Status status = Context::create(*engine, {.executor = other}).status();
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_THAT(status.message(), HasSubstr("an engine that was created for it"));
  }
}

TEST_F(ReferenceExecutor, RefusesAnOpLibraryByName) {
  const Status status =
      refusal(opLibraryPlan(DeviceKind::Cuda, {"libacme.so", 1}, "acme.gelu"), options());
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("acme.gelu (model.py:12, mlp.act): "),
                                      HasSubstr("'libacme.so'"), HasSubstr("--target cpu")));
}

TEST_F(ReferenceExecutor, RefusesAKernelWithoutAReferenceByName) {
  EngineOptions engineOptions = options();
  engineOptions.referencePath = buildDir() / "lib/libcgc_test_old_references.so";
  const Status status = refusal(softmaxPlan(), engineOptions);
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("kernel softmax_f32 (model.py:40, visual.softmax)"),
                    HasSubstr(engineOptions.referencePath), HasSubstr("no reference")));
}

TEST_F(ReferenceExecutor, ALibraryThatIsMissingDamagedOrAnotherIsNamed) {
  EngineOptions engineOptions = options();
  engineOptions.referencePath = folder_.path();
  Status status = refusal(softmaxPlan(), engineOptions);
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(folder_ / "libcgc_reference.so"), HasSubstr("install it there")));
  writeFile(folder_ / "libcgc_reference.so", "not a library");
  status = refusal(softmaxPlan(), engineOptions);
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(folder_ / "libcgc_reference.so"),
                                      HasSubstr("came with this runtime")));
  engineOptions.referencePath = buildDir() / "lib/libcgc_test_no_plugin.so";
  status = refusal(softmaxPlan(), engineOptions);
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(engineOptions.referencePath), HasSubstr("another version of cgc")));
}

TEST_F(ReferenceExecutor, AMissingLibTorchComesWithTheRecordThatNeedsIt) {
  EngineOptions engineOptions = options();
  engineOptions.provider = nullptr;
  engineOptions.providerPath = folder_.path();
  const Status status = refusal(softmaxPlan(), engineOptions);
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("aten::clone (model.py:41, visual.copy): "),
                                      HasSubstr(folder_ / "libcgc_aten.so")));
}

TEST_F(ReferenceExecutor, ChecksLaunchesAsAGpuDoes) {
  SamplePlan sample = softmaxPlan();
  std::get<KernelLaunch>(sample.plan.entries[0].buckets[1].records[0].op).block[0] = 64;
  const Status status = refusal(sample, options());
  EXPECT_EQ(status.code(), Code::InvalidFile);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("kernel softmax_f32"), HasSubstr("bucket 1"),
                                      HasSubstr("the block {128, 1, 1}")));
}

} // namespace
} // namespace cgc::test
