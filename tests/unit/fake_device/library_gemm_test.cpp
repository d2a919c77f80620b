// A GEMM of cuBLASLt on the fake GPU: the stand-in library launches its reference.
#include "runtime/plan/gemm_call.h"
#include "tests/op_library_files.h"
#include "tests/unit/fake_device/context_fixture.h"

namespace cgc::test {
namespace {

using testing::ElementsAre;

/// y = op(x w^T + bias) with x[2,3] and w[4,3].
SamplePlan gemmPlan(bool relu, bool hasResidual) {
  SamplePlan sample;
  sample.plan.target = DeviceKind::Cuda;
  sample.plan.weights = {{.name = "w", .dtype = DType::F32, .sizes = {4, 3}},
                         {.name = "bias", .dtype = DType::F32, .sizes = {4}},
                         {.name = "residual", .dtype = DType::F32, .sizes = {2, 4}}};
  sample.weights = {floatBytes({1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}), floatBytes({0, 10, 20, 30}),
                    floatBytes({100, 200, 300, 400, 500, 600, 700, 800})};
  Bucket bucket;
  bucket.inputs = {{.name = "x", .dtype = DType::F32, .sizes = {2, 3}}};
  bucket.outputs = {{.name = "y", .dtype = DType::F32, .sizes = {2, 4}}};
  bucket.arenaBytes = 256;
  bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, {2, 3}),
                    dense(BufferKind::Weight, 0, 0, DType::F32, {4, 3}),
                    dense(BufferKind::Weight, 1, 0, DType::F32, {4}),
                    dense(BufferKind::Weight, 2, 0, DType::F32, {2, 4}),
                    dense(BufferKind::Output, 0, 0, DType::F32, {2, 4}),
                    dense(BufferKind::Arena, 0, 0, DType::U8, {256})};
  GemmCall gemm{.x = id(0), .weight = id(1), .bias = id(2), .d = id(4), .workspace = id(5)};
  gemm.relu = relu;
  if (hasResidual)
    gemm.residual = id(3);
  bucket.records = {{libraryCall(gemm)}};
  sample.plan.entries = {{"main", {bucket}}};
  return sample;
}

std::vector<float> computed(const SamplePlan &sample, ExecutorKind executor) {
  const Plan plan = *Plan::fromMemory(sample.plan, sample.weights);
  EngineOptions options;
  options.cublasLtPath = builtLibrary("libcgc_test_cublaslt.so");
  const Result<Engine> engine = Engine::create(plan, options);
  EXPECT_TRUE(engine.isOk()) << engine.status().message();
  Result<Context> context = Context::create(*engine, {.executor = executor});
  EXPECT_TRUE(context.isOk()) << context.status().message();
  std::vector<float> x = {1, 2, 3, -4, -50, -6}, y(8);
  const std::vector<int64_t> in = {2, 3}, out = {2, 4};
  const TensorView input{x.data(), DType::F32, DeviceKind::Cpu, in, {}},
      output{y.data(), DType::F32, DeviceKind::Cpu, out, {}};
  const Status status = context->run("main", {&input, 1}, {&output, 1});
  EXPECT_TRUE(status.isOk()) << status.message();
  return y;
}

class FakeLibraryGemm : public testing::TestWithParam<ExecutorKind> {
protected:
  FakeLibraryGemm() { fake_cuda::reset(); }
};

INSTANTIATE_TEST_SUITE_P(Both, FakeLibraryGemm,
                         testing::Values(ExecutorKind::Stream, ExecutorKind::Graph),
                         [](const auto &info) {
                           return info.param == ExecutorKind::Stream ? "Stream" : "Graph";
                         });

TEST_P(FakeLibraryGemm, ComputesItsEpilogues) {
  EXPECT_THAT(computed(gemmPlan(false, false), GetParam()),
              ElementsAre(1, 12, 23, 36, -4, -40, 14, -30));
  EXPECT_THAT(computed(gemmPlan(true, false), GetParam()), ElementsAre(1, 12, 23, 36, 0, 0, 14, 0));
  EXPECT_THAT(computed(gemmPlan(false, true), GetParam()),
              ElementsAre(101, 212, 323, 436, 496, 560, 714, 770));
}

TEST_F(FakeDevice, TheWorkspaceOfGemmsIsPartOfTheArenas) {
  const SamplePlan sample = gemmPlan(false, false);
  const Plan plan = *Plan::fromMemory(sample.plan, sample.weights);
  for (const auto &pool : {std::shared_ptr<MemoryPool>(), *MemoryPool::create({})}) {
    EngineOptions options;
    options.cublasLtPath = builtLibrary("libcgc_test_cublaslt.so");
    options.pool = pool;
    const Result<Engine> engine = Engine::create(plan, options);
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    EXPECT_EQ(engine->memory().workspace, 0u);
    const Result<Context> one = Context::create(*engine), two = Context::create(*engine);
    ASSERT_TRUE(one.isOk() && two.isOk());
    const uint64_t shared = pool ? 256 : 512; // Contexts in a pool use one arena.
    EXPECT_EQ(engine->memory().workspace, shared);
    EXPECT_EQ(engine->memory().arenas, shared);
    if (pool) {
      EXPECT_EQ(pool->report().sum.workspace, 256u);
      EXPECT_EQ(pool->report().models.at(0).memory.workspace, 256u);
    }
  }
}

} // namespace
} // namespace cgc::test
