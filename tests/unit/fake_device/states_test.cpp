// States of a context on the fake GPU: warm-up runs and captures leave them alone, runs change
// them, and copies of them are ordered with the runs.
#include "runtime/exec/engine.h"
#include "runtime/plan/plan_memory.h"
#include "tests/unit/fake_device/context_fixture.h"
#include "tests/unit/runtime/training_plan.h"

namespace cgc::test {
namespace {

using testing::HasSubstr;

class States : public testing::Test {
protected:
  States() {
    fake_cuda::reset();
    provider_.ops = trainingOps(enqueue);
    const SamplePlan sample = trainingPlan(DeviceKind::Cuda);
    plan_ = std::make_unique<Plan>(*Plan::fromMemory(sample.plan, sample.weights));
  }
  ~States() override { fake_cuda::reset(); }

  Result<Engine> createEngine(bool separateBuffers = false) {
    EngineOptions options;
    options.provider = &provider_;
    options.separateBuffers = separateBuffers;
    return Engine::create(*plan_, options);
  }

  static Result<float> run(Context &context, std::vector<float> x) {
    float loss = -1;
    const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, kSizes, {}};
    const TensorView out{&loss, DType::F32, DeviceKind::Cpu, {}, {}};
    CGC_TRY(context.run("step", {&in, 1}, {&out, 1}));
    return loss;
  }
  static std::vector<float> read(Context &context, std::string_view name) {
    std::vector<float> values(kTrained);
    const Status status =
        context.readState(name, {values.data(), DType::F32, DeviceKind::Cpu, kSizes, {}});
    EXPECT_TRUE(status.isOk()) << status.message();
    return values;
  }
  static TensorView onDevice(const DeviceFloats &floats) {
    return {floats.data(), DType::F32, DeviceKind::Cuda, kSizes, {}};
  }
  /// Six steps give the model's losses and states, bit by bit.
  static void expectTrains(Context &context) {
    TrainedModel model;
    EXPECT_EQ(read(context, "w"), model.w);
    EXPECT_EQ(read(context, "w:exp_avg"), model.m);
    for (int i = 0; i < 6; ++i) {
      const Result<float> loss = run(context, batch(i));
      ASSERT_TRUE(loss.isOk()) << loss.status().message();
      EXPECT_EQ(*loss, model.step(batch(i))) << i;
    }
    EXPECT_EQ(read(context, "w"), model.w);
    EXPECT_EQ(read(context, "w:exp_avg"), model.m);
    EXPECT_EQ(read(context, "seen"), model.seen);
  }

  static inline const std::vector<int64_t> kSizes = {kTrained};
  FakeProvider provider_;
  std::unique_ptr<Plan> plan_;
};

TEST_F(States, TrainWithEachExecutor) {
  for (const bool separateBuffers : {false, true})
    for (const ExecutorKind executor : {ExecutorKind::Stream, ExecutorKind::Graph})
      for (const bool poison : {false, true}) {
        SCOPED_TRACE(testing::Message() << separateBuffers << int(executor) << poison);
        const Engine engine = *createEngine(separateBuffers);
        Result<Context> context =
            Context::create(engine, {.executor = executor, .poisonArena = poison});
        ASSERT_TRUE(context.isOk()) << context.status().message();
        expectTrains(*context);
      }
}

TEST_F(States, EachContextHasItsOwn) {
  const Engine engine = *createEngine();
  Context a = *Context::create(engine), b = *Context::create(engine);
  ASSERT_TRUE(run(a, batch(1)).isOk());
  expectTrains(b);
  EXPECT_NE(read(a, "w"), read(b, "w"));
}

TEST_F(States, BeginAnewAfterAReset) {
  const Engine engine = *createEngine();
  Context context = *Context::create(engine);
  expectTrains(context);
  ASSERT_TRUE(context.resetStates().isOk());
  expectTrains(context);
}

TEST_F(States, ReplaysOfACallersGraphChangeThem) {
  const Engine engine = *createEngine();
  Context context = *Context::create(engine);
  const CudaStream stream = *createStream();
  const DeviceFloats x(kTrained, 3), loss;
  const TensorView in = onDevice(x), out{loss.data(), DType::F32, DeviceKind::Cuda, {}, {}};
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_TRUE(context.run("step", {&in, 1}, {&out, 1}, stream.get()).isOk());
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  const CudaGraph owner(graph);
  EXPECT_EQ(read(context, "w"), TrainedModel().w);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  const CudaGraphExec execOwner(exec);
  TrainedModel model;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cudaGraphLaunch(exec, stream.get()), cudaSuccess);
    model.step({3, 3, 3, 3});
  }
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_EQ(read(context, "w"), model.w);
}

/// Nothing waits between the calls, so that a missing order would show as old values.
TEST_F(States, CopiesOnOtherStreamsAreOrderedWithRuns) {
  const Engine engine = *createEngine();
  Context context = *Context::create(engine);
  const CudaStream writes = *createStream(), runs = *createStream(), reads = *createStream();
  const DeviceFloats x(kTrained, 1), loss, w(kTrained, 9), before(kTrained), after(kTrained);
  const TensorView in = onDevice(x), out{loss.data(), DType::F32, DeviceKind::Cuda, {}, {}};
  fake_cuda::clearCalls();
  ASSERT_TRUE(context.writeState("w", onDevice(w), writes.get()).isOk());
  ASSERT_TRUE(context.readState("w", onDevice(before), reads.get()).isOk());
  ASSERT_TRUE(context.run("step", {&in, 1}, {&out, 1}, runs.get()).isOk());
  ASSERT_TRUE(context.readState("w", onDevice(after), reads.get()).isOk());
  EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
  ASSERT_EQ(cudaStreamSynchronize(reads.get()), cudaSuccess);
  TrainedModel model;
  model.w = {9, 9, 9, 9};
  EXPECT_EQ(before.now(), model.w);
  model.step({1, 1, 1, 1});
  EXPECT_EQ(after.now(), model.w);
  ASSERT_EQ(cudaStreamSynchronize(runs.get()), cudaSuccess);
}

TEST_F(States, AreCountedAndFreed) {
  const SamplePlan sample = trainingPlan(DeviceKind::Cuda);
  const Engine engine = *createEngine();
  EXPECT_EQ(engine.memory().weights, 0u); // Both weights are first values only.
  const uint64_t before = fake_cuda::allocatedBytes();
  const size_t handles = fake_cuda::liveHandles();
  {
    const Context context = *Context::create(engine), other = *Context::create(engine);
    EXPECT_EQ(engine.memory().states, 2 * planMemory(sample.plan).states);
    EXPECT_EQ(planMemory(sample.plan).states, 4 * 256u + 4);
    const MemoryReport memory = engine.memory();
    EXPECT_EQ(memory.total(), fake_cuda::allocatedBytes() - before);
  }
  EXPECT_EQ(engine.memory().states, 0u);
  EXPECT_EQ(engine.memory().total(), 0u);
  EXPECT_EQ(fake_cuda::allocatedBytes(), before);
  EXPECT_EQ(fake_cuda::liveHandles(), handles);
}

TEST_F(States, AreInTheMemoryBreakdown) {
  fake_cuda::reset({.deviceBytes = 1200});
  const Engine engine = *createEngine();
  const Status status = Context::create(engine).status();
  EXPECT_EQ(status.code(), Code::OutOfMemory);
  EXPECT_THAT(status.message(), HasSubstr("1.03 kB for states"));
  EXPECT_EQ(engine.memory().total(), 0u);
}

TEST_F(States, NeedCapturesAtCreation) {
  const Engine engine = *createEngine();
  const Status status = Context::create(engine, {.capture = CaptureTime::OnFirstUse}).status();
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("the plan has states"));
}

TEST_F(States, CopiesThatDoNotFitAreRefused) {
  const Engine engine = *createEngine();
  Context context = *Context::create(engine);
  std::vector<float> values(kTrained);
  EXPECT_THAT(
      context.readState("v", {values.data(), DType::F32, DeviceKind::Cpu, kSizes, {}}).message(),
      HasSubstr("no state 'v'"));
  const std::vector<int64_t> two = {2}, twos = {2}, strides = {2};
  for (const TensorView &view : {TensorView{values.data(), DType::F32, DeviceKind::Cpu, two, {}},
                                 {values.data(), DType::I32, DeviceKind::Cpu, kSizes, {}},
                                 {nullptr, DType::F32, DeviceKind::Cpu, kSizes, {}},
                                 {values.data(), DType::F32, DeviceKind::Cpu, kSizes, strides}})
    EXPECT_EQ(context.writeState("w", view).code(), Code::Usage);
  EXPECT_EQ(read(context, "w"), TrainedModel().w);
}

/// Each CUDA call of a context with states fails once.
TEST_F(States, EveryCallThatFailsIsReportedAndLeavesNothingBehind) {
  const auto live = [&]() -> Status {
    CGC_ASSIGN_OR_RETURN(const Engine engine, createEngine());
    CGC_ASSIGN_OR_RETURN(Context context, Context::create(engine));
    CGC_TRY(run(context, batch(1)).status());
    CGC_TRY(context.resetStates());
    std::vector<float> w(kTrained);
    const TensorView view{w.data(), DType::F32, DeviceKind::Cpu, kSizes, {}};
    CGC_TRY(context.readState("w", view));
    CGC_TRY(context.writeState("w", view));
    if (w != TrainedModel().w)
      return {Code::Failed, "wrong values"};
    return Status::ok();
  };
  ASSERT_TRUE(live().isOk());
  const std::vector<fake_cuda::Call> calls = fake_cuda::calls();
  size_t failures = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    fake_cuda::reset();
    fake_cuda::failAnyCall(int(i + 1), cudaErrorIllegalAddress);
    const Status status = live();
    failures += !status.isOk();
    // A call whose failure is ignored changes no result.
    EXPECT_TRUE(status.isOk() || status.code() == Code::Device)
        << calls[i].function << ": " << status.message();
    EXPECT_EQ(fake_cuda::allocatedBytes(), 0u) << calls[i].function;
    EXPECT_EQ(fake_cuda::liveHandles(), 0u) << calls[i].function;
  }
  EXPECT_GT(failures, calls.size() / 2);
}

} // namespace
} // namespace cgc::test
