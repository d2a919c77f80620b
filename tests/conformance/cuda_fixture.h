// Fixtures of the conformance tests: plans with target cuda, a provider of plain ops, loading, and
// the executors to test.
#pragma once

#include "runtime/exec/engine.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/rowwise/layer_norm.h"
#include "tests/unit/runtime/fake_provider.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>

namespace cgc::test {

inline std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.5f, 2.0f);
  std::vector<float> values(count);
  for (float &v : values)
    v = normal(random);
  return values;
}

/// A launch of this kernel, without operands, numbers and shape. Throws if the kernel does not
/// exist.
inline KernelLaunch launchOfKernel(const std::string &name) {
  const Kernel *kernel = findKernel(name);
  if (!kernel)
    throw std::runtime_error("there is no kernel " + name);
  KernelLaunch launch;
  launch.kernel = kernel->name;
  launch.abiHash = kernel->abiHash;
  return launch;
}

/// A launch of layer_norm over the last dimension. Weight or bias may be kNoTensor.
inline KernelLaunch layerNorm(DType dtype, int64_t rows, int64_t columns, TensorId x,
                              TensorId weight, TensorId bias, TensorId y) {
  KernelLaunch launch = launchOfKernel("layer_norm_" + std::string(dtypeName(dtype)));
  launch.grid[0] = layerNormBlocks(rows, 132);
  launch.block[0] = kLayerNormThreads;
  launch.reads = {x, weight, bias};
  launch.writes = {y};
  launch.ints = {rows, columns};
  launch.floats = {1e-5};
  return launch;
}

constexpr int64_t kColumns = 384;

/// A plan with most kinds of records: layer_norm, memcpy, the ATen op "clone", memset, layer_norm.
/// Entry "main" has buckets of 1, 3 and 5 rows.
inline SamplePlan chainPlan() {
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cuda;
  plan.producer = "test";
  plan.locations = {{"model.py", 40, "visual.ln_pre"}, {"model.py", 41, "visual.proj"}};
  plan.weights = {{.name = "weight", .dtype = DType::F32, .sizes = {kColumns}},
                  {.name = "bias", .dtype = DType::F32, .sizes = {kColumns}}};
  sample.weights = {floatBytes(randomFloats(kColumns, 1)), floatBytes(randomFloats(kColumns, 2))};
  Entry main{.name = "main", .buckets = {}};
  for (int64_t rows : {5, 1, 3}) {
    const uint64_t bytes = rows * kColumns * sizeof(float);
    const std::vector<int64_t> sizes = {rows, kColumns};
    Bucket bucket;
    bucket.inputs = {{"x", DType::F32, sizes}};
    bucket.outputs = {{"y", DType::F32, sizes}, {"flags", DType::U8, {3}}};
    bucket.arenaBytes = 2 * bytes;
    bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, sizes),
                      dense(BufferKind::Arena, 0, 0, DType::F32, sizes),
                      dense(BufferKind::Arena, 0, bytes, DType::F32, sizes),
                      dense(BufferKind::Output, 0, 0, DType::F32, sizes),
                      dense(BufferKind::Output, 1, 0, DType::U8, {3}),
                      dense(BufferKind::Weight, 0, 0, DType::F32, {kColumns}),
                      dense(BufferKind::Weight, 1, 0, DType::F32, {kColumns})};
    AtenCall clone;
    clone.op = "aten::clone";
    clone.args = {id(2)};
    clone.outputs = {id(1)};
    bucket.records = {
        {layerNorm(DType::F32, rows, kColumns, id(0), id(5), id(6), id(1)), LocationId(0)},
        {Memcpy{id(1), id(2)}},
        {clone, LocationId(1)},
        {Memset{id(4), 5}},
        {layerNorm(DType::F32, rows, kColumns, id(1), kNoTensor, id(5), id(3))}};
    main.buckets.push_back(bucket);
  }
  plan.entries = {main};
  return sample;
}

/// Copies its first argument to its output on the stream, or on the host without a stream.
inline Status cloneOp(const FakeCall &f, void *stream) {
  const size_t bytes = f.elements(f.call.outputs[0]) * sizeof(float);
  if (!stream) {
    std::memcpy(f.outputs[0], f.arguments[0], bytes);
    return Status::ok();
  }
  const cudaError_t error = cudaMemcpyAsync(f.outputs[0], f.arguments[0], bytes,
                                            cudaMemcpyDeviceToDevice, cudaStream_t(stream));
  return error == cudaSuccess ? Status::ok() : Status(Code::Device, cudaGetErrorString(error));
}

inline bool isCapturing(void *stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  (void)cudaStreamIsCapturing(cudaStream_t(stream), &status);
  return status != cudaStreamCaptureStatusNone;
}

/// The reason why there is no GPU, or cudaSuccess.
inline cudaError_t gpuError() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  return error == cudaSuccess && count == 0 ? cudaErrorNoDevice : error;
}

/// Loads plans and runs entry "main".
class PlanTest : public testing::Test {
protected:
  static void skipWithoutGpu() {
    if (const cudaError_t error = gpuError(); error != cudaSuccess)
      GTEST_SKIP() << "needs a GPU: " << cudaGetErrorString(error);
  }

  void load(const SamplePlan &sample) { load(sample, executor_); }
  void load(const SamplePlan &sample, ExecutorKind executor) {
    Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    plan_ = std::make_unique<Plan>(*std::move(plan));
    EngineOptions options;
    options.executor = executor;
    options.provider = &provider_;
    Result<Engine> engine = Engine::create(*plan_, options);
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    engine_ = std::make_unique<Engine>(*std::move(engine));
  }

  Context context(ExecutorKind executor, bool poison = false) {
    Result<Context> context =
        Context::create(*engine_, {.executor = executor, .poisonArena = poison});
    if (!context.isOk())
      throw std::runtime_error(context.status().message());
    return *std::move(context);
  }

  struct Outputs {
    std::vector<float> y;
    std::vector<uint8_t> flags;
    bool operator==(const Outputs &) const = default;
  };
  /// Runs a chainPlan on host memory.
  static Result<Outputs> run(Context &context, std::vector<float> x) {
    const int64_t rows = x.size() / kColumns;
    Outputs out{std::vector<float>(x.size()), std::vector<uint8_t>(3)};
    const std::vector<int64_t> sizes = {rows, kColumns}, flagSizes = {3};
    const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    const TensorView outs[] = {{out.y.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
                               {out.flags.data(), DType::U8, DeviceKind::Cpu, flagSizes, {}}};
    CGC_TRY(context.run("main", {&in, 1}, outs));
    return out;
  }

  PlanTest() { provider_.ops = {{"aten::clone", cloneOp}}; }

  ExecutorKind executor_ = ExecutorKind::Graph; ///< Of the engine.
  FakeProvider provider_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Engine> engine_;
};

/// A test of what only a GPU has. Skips without one.
class CudaTest : public PlanTest {
protected:
  void SetUp() override { skipWithoutGpu(); }
};

/// A test with each of several executors. Skips without a GPU, unless the executor is Reference.
class ExecutorTest : public PlanTest, public testing::WithParamInterface<ExecutorKind> {
protected:
  ExecutorTest() { executor_ = GetParam(); }
  void SetUp() override {
    if (!isReference())
      skipWithoutGpu();
  }

  static bool isReference() { return GetParam() == ExecutorKind::Reference; }
  /// The executor without a graph on the device that the test runs on.
  static ExecutorKind plainExecutor() {
    return isReference() ? ExecutorKind::Reference : ExecutorKind::Stream;
  }
};

/// The executors of this machine: the reference, and with a GPU the other two.
inline std::vector<ExecutorKind> executorsHere() {
  if (gpuError() != cudaSuccess)
    return {ExecutorKind::Reference};
  return {ExecutorKind::Reference, ExecutorKind::Stream, ExecutorKind::Graph};
}
inline std::string nameOfExecutor(const testing::TestParamInfo<ExecutorKind> &info) {
  return info.param == ExecutorKind::Reference ? "Reference"
         : info.param == ExecutorKind::Stream  ? "Stream"
                                               : "Graph";
}

/// Instantiates a suite of ExecutorTests for the executors of this machine.
#define CGC_ON_ALL_EXECUTORS(SUITE)                                                                \
  INSTANTIATE_TEST_SUITE_P(All, SUITE, testing::ValuesIn(executorsHere()), nameOfExecutor)
/// Instantiates a suite of ExecutorTests of what only a GPU has: streams, edges, device memory.
#define CGC_ON_GPU_EXECUTORS(SUITE)                                                                \
  INSTANTIATE_TEST_SUITE_P(                                                                        \
      Both, SUITE, testing::Values(ExecutorKind::Stream, ExecutorKind::Graph), nameOfExecutor)

} // namespace cgc::test
