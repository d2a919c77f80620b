// Engine and Context for target cuda on the fake GPU: capture, replay, ordering, memory, and a
// failure of every CUDA call.
#include "runtime/exec/engine.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/runtime/fake_provider.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

Status enqueue(void *stream, std::function<void()> work) {
  const cudaError_t error = fake_cuda::enqueue(cudaStream_t(stream), std::move(work));
  return error == cudaSuccess ? Status::ok() : Status(Code::Device, cudaGetErrorName(error));
}

/// Matches a call of `function`.
auto calls(std::string_view function) {
  return testing::Field("function", &fake_cuda::Call::function, function);
}

/// Computes -x.
Status negate(const FakeCall &f, void *stream) {
  const auto *x = static_cast<const float *>(f.arguments[0]);
  auto *y = static_cast<float *>(f.outputs[0]);
  const int64_t n = f.elements(f.call.outputs[0]);
  return enqueue(stream, [=] { std::transform(x, x + n, y, std::negate<>()); });
}

/// Computes x + w, with w repeated.
Status addRows(const FakeCall &f, void *stream) {
  const auto *x = static_cast<const float *>(f.arguments[0]);
  const auto *w = static_cast<const float *>(f.arguments[1]);
  auto *y = static_cast<float *>(f.outputs[0]);
  const int64_t n = f.elements(f.call.outputs[0]);
  return enqueue(stream, [=] {
    for (int64_t i = 0; i < n; ++i)
      y[i] = x[i] + w[i % 4];
  });
}

/// Device memory that is freed with the object.
class DeviceFloats final {
public:
  explicit DeviceFloats(size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void **>(&data_), count * sizeof(float)), cudaSuccess);
  }
  DeviceFloats(const DeviceFloats &) = delete;
  DeviceFloats &operator=(const DeviceFloats &) = delete;
  ~DeviceFloats() { (void)cudaFree(data_); }
  /// The fake device's memory is host memory.
  void set(float value) { std::fill_n(data_, count_, value); }
  std::vector<float> values() const { return {data_, data_ + count_}; }
  float *data() const { return data_; }

private:
  size_t count_;
  float *data_ = nullptr;
};

class FakeDevice : public testing::Test {
protected:
  FakeDevice() {
    fake_cuda::reset();
    provider_.ops = {{"aten::neg", negate}, {"aten::add", addRows}};
    SamplePlan sample = samplePlan();
    sample.plan.target = DeviceKind::Cuda;
    plan_ = std::make_unique<Plan>(*Plan::fromMemory(sample.plan, sample.weights));
  }
  ~FakeDevice() override { fake_cuda::reset(); }

  Result<Engine> createEngine() {
    EngineOptions options;
    options.provider = &provider_;
    return Engine::create(*plan_, options);
  }

  /// Runs "main" on one row in host memory.
  static Result<std::vector<float>> runMain(Context &context, std::vector<float> x) {
    const std::vector<int64_t> sizes = {1, 4};
    std::vector<float> y(4);
    const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    CGC_TRY(context.run("main", {&in, 1}, {&out, 1}));
    return y;
  }

  /// Enqueues "main" on one row in device memory.
  static Status enqueueMain(Context &context, const DeviceFloats &x, const DeviceFloats &y,
                            cudaStream_t stream) {
    const std::vector<int64_t> sizes = {1, 4};
    const TensorView in{x.data(), DType::F32, DeviceKind::Cuda, sizes, {}};
    const TensorView out{y.data(), DType::F32, DeviceKind::Cuda, sizes, {}};
    return context.run("main", {&in, 1}, {&out, 1}, stream);
  }

  FakeProvider provider_;
  std::unique_ptr<Plan> plan_;
};

TEST_F(FakeDevice, WeightsAreHeldAgainstTheMemoryLimit) {
  for (const uint64_t limit : {256 + 2, 256 + 3}) { // The second weight has 3 bytes behind padding.
    EngineOptions options;
    options.provider = &provider_;
    options.memoryLimit = limit;
    const Status status = Engine::create(*plan_, options).status();
    EXPECT_EQ(status.code(), limit == 256 + 3 ? Code::Ok : Code::OutOfMemory) << status.message();
  }
}

/// What lies on the GPU is checked by nobody: the host does not read it.
TEST_F(FakeDevice, IndicesOnTheGpuAreNotRead) {
  SamplePlan sample = samplePlan();
  sample.plan.target = DeviceKind::Cuda;
  sample.plan.entries.erase(sample.plan.entries.begin());
  sample.plan.entries[0].buckets[0].inputs = {
      {.name = "text",
       .dtype = DType::I64,
       .sizes = {1},
       .indexBounds = {{.upperBound = 100, .sizes = {1}, .strides = {1}}}}};
  plan_ = std::make_unique<Plan>(*Plan::fromMemory(sample.plan, sample.weights));
  const Engine engine = *createEngine();
  Context context = *Context::create(engine);
  DeviceFloats ids(2), bytes(1);
  ids.set(-1);
  const std::vector<int64_t> one = {1}, four = {4};
  const TensorView out{bytes.data(), DType::U8, DeviceKind::Cuda, four, {}};
  for (const DeviceKind device : {DeviceKind::Cuda, DeviceKind::Cpu}) {
    const TensorView in{ids.data(), DType::I64, device, one, {}};
    const Status status = context.run("fill", {&in, 1}, {&out, 1});
    EXPECT_EQ(status.isOk(), device == DeviceKind::Cuda) << status.message();
  }
}

class FakeDeviceExecutors : public FakeDevice, public testing::WithParamInterface<ExecutorKind> {};

INSTANTIATE_TEST_SUITE_P(Both, FakeDeviceExecutors,
                         testing::Values(ExecutorKind::Stream, ExecutorKind::Graph),
                         [](const auto &info) {
                           return info.param == ExecutorKind::Stream ? "Stream" : "Graph";
                         });

TEST_P(FakeDeviceExecutors, ComputeRepeatedly) {
  const Engine engine = *createEngine();
  Context context = *Context::create(engine, {.executor = GetParam()});
  for (float x : {10.f, 20.f, 30.f})
    EXPECT_THAT(*runMain(context, std::vector(4, x)), ElementsAre(1 - x, 2 - x, 3 - x, 4 - x));
  EXPECT_EQ(context.stats("main", 0)->graphNodes, GetParam() == ExecutorKind::Graph ? 3u : 0u);
}

TEST_P(FakeDeviceExecutors, ARunOnAnotherStreamWaitsForTheRunBefore) {
  const Engine engine = *createEngine();
  Context context = *Context::create(engine, {.executor = GetParam()});
  cudaStream_t first = nullptr, second = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
  {
    DeviceFloats x1(4), x2(4), y1(4), y2(4);
    x1.set(10);
    x2.set(20);
    EXPECT_TRUE(enqueueMain(context, x1, y1, first).isOk());
    EXPECT_TRUE(enqueueMain(context, x2, y2, second).isOk());
    // Both runs share the arena and the static buffers. Without ordering, the second run would
    // execute first here, and the first run's results would then be in both outputs.
    EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
    EXPECT_THAT(y1.values(), ElementsAre(-9, -8, -7, -6));
    EXPECT_THAT(y2.values(), ElementsAre(-19, -18, -17, -16));
  }
  EXPECT_EQ(cudaStreamDestroy(first), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(second), cudaSuccess);
}

TEST_P(FakeDeviceExecutors, AContextThatIsDestroyedWaitsForItsRun) {
  const Engine engine = *createEngine();
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    DeviceFloats x(4), y(4);
    x.set(10);
    {
      Context context = *Context::create(engine, {.executor = GetParam()});
      EXPECT_TRUE(enqueueMain(context, x, y, stream).isOk());
    }
    EXPECT_THAT(y.values(), ElementsAre(-9, -8, -7, -6));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(FakeDevice, WarmUpRunsReadZeros) {
  std::vector<float> read;
  provider_.ops["aten::neg"] = [&](const FakeCall &f, void *stream) {
    const auto *x = static_cast<const float *>(f.arguments[0]);
    const int64_t n = f.elements(f.call.outputs[0]);
    return enqueue(stream, [=, &read] { read.insert(read.end(), x, x + n); });
  };
  const Engine engine = *createEngine();
  ASSERT_TRUE(Context::create(engine).isOk());
  // Three warm-up runs of one row of four and of two rows.
  EXPECT_EQ(read.size(), 3u * (4 + 8));
  EXPECT_THAT(read, Each(0.f));
}

TEST_F(FakeDevice, ARecordThatFailsDuringTheCaptureFailsTheContext) {
  // The fourth run of the first record is the captured one. CUDA then ends the capture without an
  // error, with a graph that lacks the record.
  int runs = 0;
  provider_.ops["aten::neg"] = [&](const FakeCall &f, void *stream) {
    return ++runs == 4 ? Status(Code::Failed, "boom") : negate(f, stream);
  };
  const Engine engine = *createEngine();
  const size_t handles = fake_cuda::liveHandles();
  const uint64_t bytes = fake_cuda::allocatedBytes();
  const Status status = Context::create(engine).status();
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("entry 'main', bucket 0"), HasSubstr("capture"),
                    HasSubstr("aten::neg.out (model.py:12, visual.ln)"), HasSubstr("boom")));
  EXPECT_EQ(fake_cuda::liveHandles(), handles);
  EXPECT_EQ(fake_cuda::allocatedBytes(), bytes);
  EXPECT_EQ(provider_.pools, 0);
  EXPECT_EQ(provider_.captures, 0);
  EXPECT_TRUE(Context::create(engine).isOk());
}

TEST_F(FakeDevice, AnOpThatCannotBeCapturedFailsTheContext) {
  // LibTorch does this for an op that copies its result to the host.
  provider_.ops["aten::neg"] = [](const FakeCall &f, void *stream) {
    CGC_TRY(negate(f, stream));
    (void)cudaStreamSynchronize(cudaStream_t(stream));
    return Status::ok();
  };
  const Engine engine = *createEngine();
  const Status status = Context::create(engine).status();
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(), HasSubstr("cudaErrorStreamCaptureInvalidated"));
}

TEST_F(FakeDevice, ProfilesEachRecordBetweenEventsOfAReplay) {
  const Engine engine = *createEngine();
  Context context = *Context::create(engine);
  ASSERT_TRUE(runMain(context, {1, 2, 3, 4}).isOk());
  const auto times = context.profile("main", 0, 2);
  ASSERT_TRUE(times.isOk()) << times.status().message();
  // On the fake GPU each node takes a millisecond, as does the event node after it.
  EXPECT_THAT(*times, ElementsAre(ElementsAre(2000, 2000), ElementsAre(2000, 2000),
                                  ElementsAre(2000, 2000)));
  EXPECT_THAT(*runMain(context, {10, 10, 10, 10}), ElementsAre(-9, -8, -7, -6));
}

TEST_F(FakeDevice, NothingIsLeftBehind) {
  {
    const Engine engine = *createEngine();
    Context stream = *Context::create(engine, {.executor = ExecutorKind::Stream});
    Context graph = *Context::create(engine);
    EXPECT_TRUE(runMain(stream, {1, 2, 3, 4}).isOk());
    EXPECT_TRUE(runMain(graph, {1, 2, 3, 4}).isOk());
    EXPECT_TRUE(graph.profile("main", 0, 1).isOk());
    EXPECT_GT(fake_cuda::allocatedBytes(), 0u);
  }
  EXPECT_EQ(fake_cuda::allocatedBytes(), 0u);
  EXPECT_EQ(fake_cuda::liveHandles(), 0u);
  EXPECT_EQ(provider_.pools, 0);
}

TEST_F(FakeDevice, AReplayAllocatesNothingAndWaitsForNothing) {
  const Engine engine = *createEngine();
  Context context = *Context::create(engine);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    DeviceFloats x(4), y(4);
    fake_cuda::clearCalls();
    EXPECT_TRUE(enqueueMain(context, x, y, stream).isOk());
    EXPECT_THAT(fake_cuda::calls(),
                ElementsAre(calls("cudaGetDevice"), calls("cudaStreamWaitEvent"),
                            calls("cudaMemcpyAsync"), calls("cudaGraphLaunch"),
                            calls("cudaMemcpyAsync"), calls("cudaEventRecord")));
    const fake_cuda::CallCounts counts = fake_cuda::callCounts();
    EXPECT_EQ(counts.all, 6u);
    EXPECT_EQ(counts.allocations, 0u);
    EXPECT_EQ(counts.waits, 0u);
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(FakeDevice, ADeviceWithoutMemoryGivesTheMemoryBreakdown) {
  fake_cuda::reset({.deviceBytes = 800});
  const Engine engine = *createEngine();
  const uint64_t before = fake_cuda::allocatedBytes();
  fake_cuda::clearCalls();
  const Status status = Context::create(engine).status();
  EXPECT_EQ(status.code(), Code::OutOfMemory);
  // Refused before any memory is allocated.
  EXPECT_EQ(std::ranges::count(fake_cuda::calls(), "cudaMalloc", &fake_cuda::Call::function), 0);
  EXPECT_EQ(fake_cuda::allocatedBytes(), before);
  // The weights take 256 + 3 bytes. The arena is that of the larger bucket; inputs and outputs are
  // those of all buckets.
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("259 bytes for weights"), HasSubstr("512 bytes for the arena"),
                    HasSubstr("100 bytes for inputs and outputs"),
                    HasSubstr("541 bytes of 800 bytes free")));
}

/// Each CUDA runtime call of creation and run fails once.
TEST_F(FakeDevice, EveryCallThatFailsIsReportedAndLeavesNothingBehind) {
  // Calls during destruction are not counted: their failures are ignored.
  size_t callsUntilDestroyed = 0;
  const auto createAndRun = [&]() -> Status {
    CGC_ASSIGN_OR_RETURN(const Engine engine, createEngine());
    CGC_ASSIGN_OR_RETURN(Context context, Context::create(engine));
    CGC_ASSIGN_OR_RETURN(const std::vector<float> y, runMain(context, {10, 10, 10, 10}));
    if (y != std::vector<float>{-9, -8, -7, -6})
      return {Code::Failed, "wrong results"};
    const Status profiled = context.profile("main", 0, 1).status();
    callsUntilDestroyed = fake_cuda::calls().size();
    return profiled;
  };
  ASSERT_TRUE(createAndRun().isOk());
  std::map<std::string, int> counts;
  std::vector<fake_cuda::Call> calls = fake_cuda::calls();
  calls.resize(callsUntilDestroyed);
  for (const fake_cuda::Call &call : calls)
    ++counts[std::string(call.function)];
  // Failures of these calls have no effect: the freed objects are not used again, and the current
  // device stays the same.
  for (const char *ignored : {"cudaFreeHost", "cudaEventDestroy", "cudaStreamDestroy",
                              "cudaGraphDestroy", "cudaGraphExecDestroy", "cudaGetDevice"})
    counts.erase(ignored);
  ASSERT_GE(counts.size(), 20u);
  for (const auto &[function, count] : counts)
    for (int nth = 1; nth <= count; ++nth)
      for (const bool sticky : {false, true}) {
        SCOPED_TRACE(function + ", call " + std::to_string(nth) + (sticky ? ", sticky" : ""));
        fake_cuda::reset();
        fake_cuda::failCall(function, nth, cudaErrorIllegalAddress, sticky);
        const Status status = createAndRun();
        EXPECT_EQ(status.code(), Code::Device) << status.message();
        EXPECT_THAT(status.message(), HasSubstr("cudaErrorIllegalAddress"));
        EXPECT_EQ(fake_cuda::allocatedBytes(), 0u);
        EXPECT_EQ(fake_cuda::liveHandles(), 0u);
        EXPECT_EQ(provider_.pools, 0);
        EXPECT_EQ(provider_.captures, 0);
        fake_cuda::reset();
        const Status next = createAndRun();
        EXPECT_TRUE(next.isOk()) << next.message();
      }
}

} // namespace
} // namespace cgc::test
