// Engine and Context for target cuda on the fake GPU: capture, replay and ordering.
#include "runtime/exec/context_impl.h"
#include "tests/unit/fake_device/context_fixture.h"

namespace cgc::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// Matches a call of `function`.
auto calls(std::string_view function) {
  return testing::Field("function", &fake_cuda::Call::function, function);
}

TEST_F(FakeDevice, WeightsAreHeldAgainstTheMemoryLimit) {
  for (const uint64_t limit : {256 + 2, 256 + 3}) { // The second weight has 3 bytes behind padding.
    EngineOptions options;
    options.provider = &provider_;
    options.memoryLimit = limit;
    const Status status = Engine::create(*plan_, options).status();
    EXPECT_EQ(status.code(), limit == 256 + 3 ? Code::Ok : Code::OutOfMemory) << status.message();
  }
}

class FakeDeviceExecutors : public FakeDevice, public testing::WithParamInterface<ExecutorKind> {};

TEST_F(FakeDevice, WeightsAreCopiedFromAnEngineOnAGpuWithTheSameBuffersOfThePlan) {
  const Engine engine = *createEngine();
  const auto create = [&](const Plan &plan, auto set) {
    EngineOptions options;
    options.provider = &provider_;
    options.copyWeightsFrom = &engine;
    set(options);
    return Engine::create(plan, options).status();
  };
  const auto nothing = [](EngineOptions &) {};
  EXPECT_TRUE(create(*plan_, nothing).isOk());
  SamplePlan sample = samplePlan();
  sample.plan.target = DeviceKind::Cuda;
  const Plan other = *Plan::fromMemory(sample.plan, sample.weights);
  EXPECT_THAT(create(other, nothing).message(), HasSubstr("another plan"));
  EXPECT_THAT(create(*plan_, [](EngineOptions &o) { o.separateBuffers = true; }).message(),
              HasSubstr("other buffers"));
  EXPECT_THAT(
      create(*plan_, [](EngineOptions &o) { o.executor = ExecutorKind::Reference; }).message(),
      HasSubstr("two engines on GPUs"));
}

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
    EXPECT_THAT(y1.now(), ElementsAre(-9, -8, -7, -6));
    EXPECT_THAT(y2.now(), ElementsAre(-19, -18, -17, -16));
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
    EXPECT_THAT(y.now(), ElementsAre(-9, -8, -7, -6));
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

TEST_F(FakeDevice, AReplayAllocatesNothingAndWaitsForNothing) {
  const Engine engine = *createEngine();
  Context context = *Context::create(engine);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    DeviceFloats x(4), y(4);
    EXPECT_TRUE(enqueueMain(context, x, y, stream).isOk());
    fake_cuda::clearCalls();
    EXPECT_TRUE(enqueueMain(context, x, y, stream).isOk());
    // The op of a provider reads the input from its static buffer.
    EXPECT_THAT(fake_cuda::calls(),
                ElementsAre(calls("cudaGetDevice"), calls("cudaStreamGetCaptureInfo"),
                            calls("cudaStreamWaitEvent"), calls("cudaMemcpyAsync"),
                            calls("cudaGraphLaunch"), calls("cudaEventRecord")));
    const fake_cuda::CallCounts counts = fake_cuda::callCounts();
    EXPECT_EQ(counts.all, 6u);
    EXPECT_EQ(counts.allocations, 0u);
    EXPECT_EQ(counts.waits, 0u);
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

/// Replays of the caller's graphs come between later runs, whatever rows the last captured run
/// took.
TEST_F(FakeDevice, ARunAfterCapturesClearsAllRowsBehindItsOwn) {
  const Engine engine = *createEngine();
  Context context = *Context::create(engine, {.addressSets = 0});
  const CudaStream stream = *createStream();
  const DeviceFloats x(8, 3), y(8);
  const auto run = [&](int64_t rows, cudaStream_t on) {
    const std::vector<int64_t> sizes = {rows, 4};
    const TensorView in{x.data(), DType::F32, DeviceKind::Cuda, sizes, {}};
    const TensorView out{y.data(), DType::F32, DeviceKind::Cuda, sizes, {}};
    const BucketRun run{1, RowRange{0, rows, rows}};
    return implOf(context).run(0, {&run, 1}, {&in, 1}, {&out, 1}, on);
  };
  const auto capture = [&](int64_t rows) {
    EXPECT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    const Status status = run(rows, stream.get());
    EXPECT_TRUE(status.isOk()) << status.message();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
    return CudaGraph(graph);
  };
  const CudaGraph both = capture(2), one = capture(1);
  cudaGraphExec_t made = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&made, both.get(), 0), cudaSuccess);
  const CudaGraphExec exec(made);
  ASSERT_EQ(cudaGraphLaunch(exec.get(), stream.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  ASSERT_TRUE(run(1, nullptr).isOk());
  const Result<TensorView> input = context.inputBuffer("main", 1, 0);
  ASSERT_TRUE(input.isOk()) << input.status().message();
  const auto *const rows = static_cast<const float *>(input->data);
  EXPECT_THAT(std::vector(rows, rows + 8), ElementsAre(3, 3, 3, 3, 0, 0, 0, 0));
}

} // namespace
} // namespace cgc::test
