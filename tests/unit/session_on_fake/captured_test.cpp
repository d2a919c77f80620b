// Requests on streams that the caller captures: which contexts they use, and who keeps what alive.
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/runtime/session/served_plan.h"

#include <cuda_runtime_api.h>

#include <thread>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Four rows of four floats in the memory of the GPU, which is host memory on the fake one.
struct Rows {
  explicit Rows(int64_t rows = 4) : sizes{rows, 4} {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void **>(&data), bytes()), cudaSuccess);
    set(0);
  }
  Rows(const Rows &) = delete;
  ~Rows() { (void)cudaFree(data); }
  size_t bytes() const { return *tensorBytes(DType::F32, sizes); }
  TensorView view() const { return {data, DType::F32, DeviceKind::Cuda, sizes, {}}; }
  void set(float first) const {
    for (size_t i = 0; i < bytes() / sizeof(float); ++i)
      data[i] = first + float(i);
  }
  std::vector<float> values() const { return {data, data + bytes() / sizeof(float)}; }
  std::vector<int64_t> sizes;
  float *data = nullptr;
};

class Captured : public ServedPlanTest {
protected:
  Captured() {
    fake_cuda::reset();
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~Captured() override {
    (void)cudaStreamDestroy(stream_);
    fake_cuda::reset();
  }

  static Status run(Session &session, const Rows &x, const Rows &y, cudaStream_t stream) {
    const TensorView in = x.view(), out = y.view();
    return session.run("rows", {&in, 1}, {&out, 1}, stream);
  }
  void begin() const {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  }
  /// Ends the capture and keeps only an executable.
  cudaGraphExec_t end() const {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return exec;
  }
  void replay(cudaGraphExec_t exec) const {
    ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  /// Captures one run.
  cudaGraphExec_t capture(Session &session, const Rows &x, const Rows &y) const {
    begin();
    const Status status = run(session, x, y, stream_);
    EXPECT_TRUE(status.isOk()) << status.message();
    return end();
  }

  const std::shared_ptr<const Plan> plan_ = toPlan(servedPlan());
  cudaStream_t stream_ = nullptr;
};

TEST_F(Captured, ARequestOfAnyBatchReplaysBesideOtherRequests) {
  Session session = createSession(plan_, {.capturedContexts = 1});
  for (const int64_t rows : {4, 3, 100}) { // Exact, padded, split.
    const Rows x(rows), y(rows);
    const cudaGraphExec_t exec = capture(session, x, y);
    for (const float first : {5.f, 70.f, -3.f}) {
      x.set(first);
      replay(exec);
      EXPECT_EQ(y.values(), expected(y.sizes, first)) << rows;
      EXPECT_EQ(*ServedPlanTest::run(session, "rows", {rows, 4}), expected(y.sizes));
    }
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess); // Another capture may have the context.
  }
}

/// The second run of a capture goes after the first one, and stays after what the caller
/// captured before it on another stream.
TEST_F(Captured, ARunOnAForkedStreamKeepsTheWorkBeforeIt) {
  Session session = createSession(plan_, {.capturedContexts = 1});
  const Rows x, y, source, late, z;
  cudaStream_t side = nullptr;
  cudaEvent_t forked = nullptr, joined = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming), cudaSuccess);
  begin();
  ASSERT_EQ(cudaEventRecord(forked, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(side, forked, 0), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(late.data, source.data, source.bytes(), cudaMemcpyDeviceToDevice, side),
            cudaSuccess);
  ASSERT_TRUE(run(session, x, y, stream_).isOk());
  ASSERT_TRUE(run(session, late, z, side).isOk());
  ASSERT_EQ(cudaEventRecord(joined, side), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream_, joined, 0), cudaSuccess);
  const cudaGraphExec_t exec = end();
  for (int i = 1; i <= 20; ++i) { // The nodes run in another order each time.
    x.set(float(i));
    source.set(float(-7 * i));
    replay(exec);
    EXPECT_EQ(y.values(), expected(y.sizes, float(i)));
    EXPECT_EQ(z.values(), expected(z.sizes, float(-7 * i)));
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(forked), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(joined), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(side), cudaSuccess);
}

TEST_F(Captured, ThePaddingOfAReplayIsZerosWhateverRanBefore) {
  Session session = createSession(plan_, {.capturedContexts = 1});
  const Rows few(3), many(4), y(3), z(4);
  many.set(1000);
  begin();
  ASSERT_TRUE(run(session, few, y, stream_).isOk());
  ASSERT_TRUE(run(session, many, z, stream_).isOk());
  const cudaGraphExec_t exec = end();
  std::vector<std::vector<float>> negated;
  onNeg = [&](std::vector<float> x) { negated.push_back(std::move(x)); };
  for (int i = 0; i < 2; ++i)
    replay(exec);
  ASSERT_EQ(negated.size(), 4u);
  for (const size_t padded : {0, 2})
    EXPECT_EQ(std::vector<float>(negated[padded].end() - 4, negated[padded].end()),
              std::vector<float>(4, 0));
  onNeg = nullptr;
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(Captured, ACaptureUsesAContextOfTheDeviceOfItsStream) {
  fake_cuda::reset({.devices = 2});
  Session session = createSession(plan_, {.devices = {0, 1}, .capturedContexts = 1});
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t second = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
  {
    const Rows x, y;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    const Rows onFirst, result;
    const cudaGraphExec_t first = capture(session, onFirst, result);
    std::swap(stream_, second);
    const cudaGraphExec_t exec = capture(session, x, y);
    replay(exec);
    EXPECT_EQ(y.values(), expected(y.sizes));
    std::swap(stream_, second);
    replay(first);
    EXPECT_EQ(result.values(), expected(y.sizes));
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(cudaGraphExecDestroy(first), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamDestroy(second), cudaSuccess);
}

/// Requests with streams of their own, captures of two threads, and replays, all at once.
TEST_F(Captured, ThreadsCaptureAndReplayBesideRequests) {
  Session session = createSession(plan_, {.contexts = 2, .capturedContexts = 2});
  const auto work = [&](float first) {
    cudaStream_t on = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&on, cudaStreamNonBlocking), cudaSuccess);
    for (int i = 0; i < 20; ++i) {
      const Rows x(5), y(5), z(5);
      x.set(first);
      ASSERT_EQ(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), cudaSuccess);
      EXPECT_TRUE(run(session, x, y, on).isOk());
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t exec = nullptr;
      ASSERT_EQ(cudaStreamEndCapture(on, &graph), cudaSuccess);
      ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
      EXPECT_EQ(cudaGraphLaunch(exec, on), cudaSuccess);
      EXPECT_TRUE(run(session, y, z, on).isOk());
      EXPECT_EQ(cudaStreamSynchronize(on), cudaSuccess);
      EXPECT_EQ(y.values(), expected(y.sizes, first));
      EXPECT_EQ(z.values()[4], 1 - (1 - (first + 4)));
      EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    EXPECT_EQ(cudaStreamDestroy(on), cudaSuccess);
  };
  std::thread other([&] { work(50); });
  work(7);
  other.join();
}

TEST_F(Captured, EachContextHasASeedOfItsOwn) {
  Session session =
      createSession(toPlan(seedPlan()), {.contexts = 1, .capturedContexts = 2, .seed = 7});
  const std::vector<int64_t> one = {1};
  const Rows x;
  int64_t *seeds = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void **>(&seeds), 2 * sizeof(int64_t)), cudaSuccess);
  std::vector<cudaGraphExec_t> graphs;
  for (int i = 0; i < 2; ++i) {
    const TensorView in{x.data, DType::F32, DeviceKind::Cuda, one, {}},
        out{seeds + i, DType::I64, DeviceKind::Cuda, {}, {}};
    begin();
    const Status status = session.run("seed", {&in, 1}, {&out, 1}, stream_);
    EXPECT_TRUE(status.isOk()) << status.message();
    graphs.push_back(end());
  }
  for (const cudaGraphExec_t graph : graphs)
    replay(graph);
  const int64_t two32 = int64_t(1) << 32;
  EXPECT_THAT(std::vector<int64_t>(seeds, seeds + 2),
              testing::UnorderedElementsAre(7 + two32, 7 + 2 * two32));
  for (const cudaGraphExec_t graph : graphs)
    EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaFree(seeds), cudaSuccess);
}

TEST_F(Captured, ACaptureAllocatesNoMemoryAndWaitsForNothing) {
  Session session = createSession(plan_, {.capturedContexts = 1});
  const Rows x, y;
  ASSERT_TRUE(run(session, x, y, stream_).isOk()); // In flight.
  const uint64_t bytes = fake_cuda::allocatedBytes();
  begin();
  fake_cuda::clearCalls();
  ASSERT_TRUE(run(session, x, y, stream_).isOk());
  EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
  EXPECT_EQ(fake_cuda::allocatedBytes(), bytes);
  for (const fake_cuda::Call &call : fake_cuda::calls()) {
    EXPECT_NE(call.function, "cudaStreamWaitEvent");
    EXPECT_NE(call.function, "cudaEventRecord");
    EXPECT_NE(call.function, "cudaGraphInstantiate");
  }
  EXPECT_EQ(cudaGraphExecDestroy(end()), cudaSuccess);
}

TEST_F(Captured, WithoutASetAsideContextTheCaptureIsRefusedAndGoesOn) {
  Session session = createSession(plan_);
  const Rows x, y;
  begin();
  const Status refused = run(session, x, y, stream_);
  EXPECT_EQ(refused.code(), Code::Usage);
  EXPECT_THAT(refused.message(), HasSubstr("create it with captured contexts"));
  ASSERT_EQ(cudaMemsetAsync(y.data, 0, y.bytes(), stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(end()), cudaSuccess);
}

TEST_F(Captured, ACaptureOfHostTensorsUsesTheCurrentGpu) {
  fake_cuda::reset({.devices = 3});
  Session session = createSession(plan_, {.devices = {0, 1}, .capturedContexts = 1});
  float *memory = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void **>(&memory), 8 * sizeof(float)), cudaSuccess);
  for (int i = 0; i < 4; ++i)
    memory[i] = float(i);
  const std::vector<int64_t> sizes = {1, 4};
  const TensorView in{memory, DType::F32, DeviceKind::Cpu, sizes, {}},
      out{memory + 4, DType::F32, DeviceKind::Cpu, sizes, {}};
  std::vector<cudaGraphExec_t> execs;
  std::vector<cudaStream_t> streams;
  for (const int device : {1, 0, 2}) {
    ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&streams.emplace_back(), cudaStreamNonBlocking),
              cudaSuccess);
    std::swap(stream_, streams.back());
    begin();
    const Status status = session.run("rows", {&in, 1}, {&out, 1}, stream_);
    EXPECT_EQ(status.code(), device < 2 ? Code::Ok : Code::Usage) << status.message();
    execs.push_back(end());
    std::swap(stream_, streams.back());
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  begin(); // Each of the two contexts is held by a graph on its GPU.
  EXPECT_EQ(session.run("rows", {&in, 1}, {&out, 1}, stream_).code(), Code::Busy);
  execs.push_back(end());
  ASSERT_EQ(cudaGraphLaunch(execs[0], streams[0]), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  EXPECT_EQ(std::vector<float>(memory + 4, memory + 8), expected(sizes));
  for (const cudaGraphExec_t exec : execs)
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  for (const cudaStream_t stream : streams)
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(memory), cudaSuccess);
}

TEST_F(Captured, ARequestThatDoesNotFitIsRefusedAndTheCaptureGoesOn) {
  provider_.methods["rows"] = [](auto, auto, void *) { return Status::ok(); };
  Session session =
      createSession(plan_, {.capturedContexts = 1, .maxBatch = 8, .fallbackModel = "model.pt"});
  const Rows x(4), y(4), large(9), larger(9);
  TensorView onHost = x.view();
  const TensorView out = y.view();
  begin();
  const Status fallback = run(session, large, larger, stream_);
  EXPECT_EQ(fallback.code(), Code::Usage);
  EXPECT_THAT(fallback.message(), HasSubstr("cannot run the fallback model in a capture"));
  std::vector<float> memory(16);
  onHost.data = memory.data();
  const Status address = session.run("rows", {&onHost, 1}, {&out, 1}, stream_);
  EXPECT_EQ(address.code(), Code::Usage);
  EXPECT_THAT(address.message(), HasSubstr("its address is of the host"));
  EXPECT_TRUE(run(session, x, y, stream_).isOk());
  const cudaGraphExec_t exec = end();
  x.set(3);
  replay(exec);
  EXPECT_EQ(y.values(), expected(y.sizes, 3));
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(Captured, ContextsForCapturesAreReadyEvenIfOthersCaptureOnFirstUse) {
  SessionOptions options{.capturedContexts = 1};
  options.context.capture = CaptureTime::OnFirstUse;
  Session session = createSession(plan_, options);
  const Rows x, y;
  const cudaGraphExec_t exec = capture(session, x, y);
  x.set(2);
  replay(exec);
  EXPECT_EQ(y.values(), expected(y.sizes, 2));
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(Captured, AContextIsHeldUntilTheGraphAndItsExecutablesAreDestroyed) {
  fake_cuda::reset({.devices = 2});
  Session session = createSession(plan_, {.devices = {0, 1}, .capturedContexts = 1});
  const Rows x, y;
  const cudaGraphExec_t exec = capture(session, x, y);
  begin();
  const Status busy = run(session, x, y, stream_);
  EXPECT_EQ(busy.code(), Code::Busy);
  EXPECT_THAT(busy.message(), AllOf(HasSubstr("hold all 1"), HasSubstr("more captured contexts")));
  ASSERT_EQ(cudaMemsetAsync(y.data, 0, y.bytes(), stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(end()), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  const cudaGraphExec_t next = capture(session, x, y);
  replay(next);
  EXPECT_EQ(y.values(), expected(y.sizes));
  EXPECT_EQ(cudaGraphExecDestroy(next), cudaSuccess);
}

TEST_F(Captured, ACaptureThatFailsGivesTheContextBack) {
  Session session = createSession(plan_, {.capturedContexts = 1});
  const Rows x, y;
  begin();
  ASSERT_TRUE(run(session, x, y, stream_).isOk());
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorStreamCaptureUnsupported);
  const Status invalid = run(session, x, y, stream_);
  EXPECT_EQ(invalid.code(), Code::Usage);
  EXPECT_THAT(invalid.message(), HasSubstr("cudaStreamEndCapture"));
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaGraphExecDestroy(capture(session, x, y)), cudaSuccess);
}

TEST_F(Captured, AGraphKeepsItsPlanUntilAnExchangeAfterItIsDestroyed) {
  const uint64_t bytes = fake_cuda::allocatedBytes();
  {
    Session session = createSession(plan_, {.capturedContexts = 1});
    const uint64_t onePlan = fake_cuda::allocatedBytes();
    const Rows x, y;
    const uint64_t tensors = fake_cuda::allocatedBytes() - onePlan;
    const cudaGraphExec_t exec = capture(session, x, y);
    ASSERT_TRUE(session.swapWeights(toPlan(servedPlan({5, 6, 7, 8}))).isOk());
    EXPECT_GT(fake_cuda::allocatedBytes(), onePlan + tensors);
    replay(exec);
    EXPECT_EQ(y.values(), expected(y.sizes));
    EXPECT_EQ(*ServedPlanTest::run(session, "rows", {4, 4}), expected(y.sizes, 0, {5, 6, 7, 8}));
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    ASSERT_TRUE(session.swapWeights(plan_).isOk());
    EXPECT_EQ(fake_cuda::allocatedBytes(), onePlan + tensors);
  }
  EXPECT_EQ(fake_cuda::allocatedBytes(), bytes);
}

/// The arena of a pool could be in use by another model while the caller's graph runs.
TEST_F(Captured, AContextForCapturesDoesNotShareTheArenaOfAPool) {
  const std::shared_ptr<MemoryPool> pool = *MemoryPool::create();
  Session session = createSession(plan_, {.capturedContexts = 1, .engine = {.pool = pool}});
  const Session sharing = createSession(plan_, {.engine = {.pool = pool}});
  EXPECT_EQ(session.memory().arenas, 2 * sharing.memory().arenas);
  const Rows x, y;
  const cudaGraphExec_t exec = capture(session, x, y);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(*ServedPlanTest::run(session, "rows", {4, 4}, 9), expected(y.sizes, 9));
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(y.values(), expected(y.sizes));
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  // A context that does share it says so.
  EngineOptions options{.pool = pool};
  options.provider = &provider_;
  const Engine engine = *Engine::create(*plan_, options);
  Context context = *Context::create(engine);
  const Status shared = context.graph("rows", 0).status();
  EXPECT_EQ(shared.code(), Code::Usage);
  EXPECT_THAT(shared.message(), HasSubstr("ContextOptions::ownArena"));
}

/// The call fails or the capture is right; either way the next capture is.
TEST_F(Captured, AFailureOfAnyCallLeavesTheSessionUsable) {
  const Rows x(5), y(5); // A split: 4 and 1.
  size_t calls = 0;
  {
    Session session = createSession(plan_, {.capturedContexts = 1});
    begin();
    fake_cuda::clearCalls();
    ASSERT_TRUE(run(session, x, y, stream_).isOk());
    calls = fake_cuda::calls().size();
    EXPECT_EQ(cudaGraphExecDestroy(end()), cudaSuccess);
  }
  const size_t handles = fake_cuda::liveHandles();
  for (size_t nth = 1; nth <= calls; ++nth) {
    Session session = createSession(plan_, {.capturedContexts = 1});
    begin();
    fake_cuda::failAnyCall(int(nth), cudaErrorInvalidValue);
    const bool isCaptured = run(session, x, y, stream_).isOk();
    const cudaGraphExec_t exec = end();
    x.set(3);
    if (isCaptured) {
      replay(exec);
      EXPECT_EQ(y.values(), expected(y.sizes, 3)) << nth;
    }
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    const cudaGraphExec_t next = capture(session, x, y);
    replay(next);
    EXPECT_EQ(y.values(), expected(y.sizes, 3)) << nth;
    EXPECT_EQ(cudaGraphExecDestroy(next), cudaSuccess);
  }
  EXPECT_EQ(fake_cuda::liveHandles(), handles);
}

TEST_F(Captured, AReservationWaitsForTheWorkBefore) {
  Session session = createSession(plan_);
  const Rows x, y;
  ASSERT_TRUE(run(session, x, y, stream_).isOk()); // It copies x to the static input, later.
  Reservation reservation = *session.reserve("rows", 4);
  auto *const in = static_cast<float *>(reservation.inputBuffer(0)->data);
  for (int i = 0; i < 16; ++i)
    in[i] = float(100 + i);
  ASSERT_TRUE(reservation.run().isOk());
  const auto *const out = static_cast<const float *>(reservation.outputBuffer(0)->data);
  EXPECT_EQ(std::vector<float>(out, out + 16), expected(y.sizes, 100));
}

TEST_F(Captured, AReservationRunsWithoutCopiesOnAStream) {
  Session session = createSession(plan_);
  Reservation reservation = *session.reserve("rows", 4);
  ASSERT_TRUE(reservation.run(stream_).isOk());
  fake_cuda::clearCalls();
  ASSERT_TRUE(reservation.run(stream_).isOk());
  EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
  EXPECT_EQ(fake_cuda::callCounts().allocations, 0u);
  for (const fake_cuda::Call &call : fake_cuda::calls())
    EXPECT_NE(call.function, "cudaMemcpyAsync");
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

TEST_F(Captured, AReservationIsNotForCaptures) {
  Session session = createSession(plan_);
  Reservation reservation = *session.reserve("rows", 4);
  const Rows y;
  begin();
  const Status refused = reservation.run(stream_);
  EXPECT_EQ(refused.code(), Code::Usage);
  EXPECT_THAT(refused.message(), HasSubstr("run the session itself"));
  ASSERT_EQ(cudaMemsetAsync(y.data, 0, y.bytes(), stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(end()), cudaSuccess);
}

TEST_F(Captured, AReservationRunsOnTheGpuThatIsNamed) {
  fake_cuda::reset({.devices = 2});
  Session session = createSession(plan_, {.devices = {0, 1}});
  EXPECT_THAT(session.reserve("rows", 4, 2).status().message(), HasSubstr("no contexts on GPU 2"));
  Reservation reservation = *session.reserve("rows", 4, 1);
  EXPECT_EQ(reservation.device(), 1);
  const Status refused = reservation.run(stream_);
  EXPECT_EQ(refused.code(), Code::Usage);
  EXPECT_THAT(refused.message(),
              HasSubstr("the stream is of GPU 0, and the reservation is of GPU 1"));
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_TRUE(reservation.run(stream).isOk());
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(session.reserve("rows", 4)->device(), 0); // The least busy one.
  EXPECT_EQ(session.stats().failures, 1u);
  EXPECT_EQ(session.stats().replays, 1u);
}

TEST_F(Captured, RunsOfACallersGraphAreNoReplaysOfTheSession) {
  size_t buckets = 0;
  for (const Entry &entry : plan_->data().entries)
    buckets += entry.buckets.size();
  Session session = createSession(plan_, {.capturedContexts = 1});
  EXPECT_EQ(session.stats().captures, 2 * buckets);
  const Rows x, y;
  EXPECT_EQ(cudaGraphExecDestroy(capture(session, x, y)), cudaSuccess);
  EXPECT_EQ(session.stats().bucketRuns, 1u);
  EXPECT_EQ(session.stats().replays, 0u);
}

} // namespace
} // namespace cgc::test
