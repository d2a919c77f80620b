// Host calls on the fake GPU: the CUDA calls of a run, captures by the caller, and a failure of
// every CUDA call.
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/runtime/session/host_plan.h"

#include <cuda_runtime_api.h>

namespace cgc::test {
namespace {

using testing::HasSubstr;

class SplitGraphs : public ServedPlanTest {
protected:
  SplitGraphs() { fake_cuda::reset(); }
  ~SplitGraphs() override { fake_cuda::reset(); }

  static SessionOptions withGate() {
    SessionOptions options;
    options.engine.hostFunctions = {{"visual.gate.forward", gate}};
    return options;
  }

  const std::shared_ptr<const Plan> plan_ = toPlan(hostPlan());
};

TEST_F(SplitGraphs, ARunLaunchesAGraphForEachPartAndNeitherAllocatesNorWaits) {
  Session session = createSession(plan_, withGate());
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  float *x = nullptr, *y = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void **>(&x), 32), cudaSuccess);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void **>(&y), 32), cudaSuccess);
  const std::vector<int64_t> sizes = {2, 4};
  const TensorView in{x, DType::F32, DeviceKind::Cuda, sizes, {}},
      out{y, DType::F32, DeviceKind::Cuda, sizes, {}};
  for (unsigned seed = 1; seed <= 20; ++seed) {
    for (int i = 0; i < 8; ++i)
      x[i] = float(i) - float(seed);
    fake_cuda::clearCalls();
    EXPECT_TRUE(session.run("gated", {&in, 1}, {&out, 1}, stream).isOk());
    EXPECT_EQ(fake_cuda::callCounts().allocations, 0u);
    EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
    EXPECT_EQ(std::ranges::count(fake_cuda::calls(), "cudaGraphLaunch", &fake_cuda::Call::function),
              2); // The last record is a host call.
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(std::vector<float>(y, y + 8), gated(-float(seed)));
  }
  EXPECT_EQ(cudaFree(x), cudaSuccess);
  EXPECT_EQ(cudaFree(y), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(SplitGraphs, AStreamThatIsBeingCapturedIsRefused) {
  SessionOptions options = withGate();
  options.capturedContexts = 1;
  Session session = createSession(plan_, options);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  float *x = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void **>(&x), 64), cudaSuccess);
  const std::vector<int64_t> sizes = {2, 4};
  const TensorView in{x, DType::F32, DeviceKind::Cuda, sizes, {}},
      out{x + 8, DType::F32, DeviceKind::Cuda, sizes, {}};
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  const Status refused = session.run("gated", {&in, 1}, {&out, 1}, stream);
  EXPECT_EQ(refused.code(), Code::Usage);
  EXPECT_THAT(refused.message(), HasSubstr("cannot call the host functions"));
  cudaGraph_t graph = nullptr; // The capture is still valid.
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_TRUE(session.run("gated", {&in, 1}, {&out, 1}, stream).isOk());
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(x), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(SplitGraphs, EveryFailedCallLeaksNothing) {
  const uint64_t bytes = fake_cuda::allocatedBytes();
  const size_t handles = fake_cuda::liveHandles();
  SamplePlan small = hostPlan();
  small.plan.entries.resize(1);
  const auto plan = toPlan(small);
  for (int nth = 1;; ++nth) {
    fake_cuda::reset();
    fake_cuda::failAnyCall(nth, cudaErrorInvalidValue);
    SessionOptions options = withGate();
    options.engine.provider = &provider_;
    const Status status = [&]() -> Status {
      CGC_ASSIGN_OR_RETURN(Session session, Session::create(plan, options));
      CGC_ASSIGN_OR_RETURN(const std::vector<float> y, run(session, "gated", {2, 4}));
      EXPECT_EQ(y, gated(0)) << nth;
      return Status::ok();
    }();
    const bool allWereCalled = fake_cuda::callCounts().all < size_t(nth);
    EXPECT_EQ(fake_cuda::allocatedBytes(), bytes) << nth << ": " << status.message();
    EXPECT_EQ(fake_cuda::liveHandles(), handles) << nth << ": " << status.message();
    EXPECT_EQ(provider_.pools, 0) << nth;
    if (allWereCalled)
      break;
    ASSERT_LT(nth, 5'000);
  }
}

class SplitContexts : public SplitGraphs {
protected:
  Result<Context> create(const SamplePlan &sample, HostFunction function) {
    plan_.emplace(*Plan::fromMemory(sample.plan, sample.weights));
    EngineOptions options;
    options.provider = &provider_;
    options.hostFunctions = {{"visual.gate.forward", std::move(function)}};
    CGC_ASSIGN_OR_RETURN(Engine engine, Engine::create(*plan_, options));
    engine_.emplace(std::move(engine));
    return Context::create(*engine_);
  }
  std::optional<Plan> plan_;
  std::optional<Engine> engine_;
};

TEST_F(SplitContexts, PartsWithoutElementsAreNotCaptured) {
  SamplePlan sample = hostPlan();
  Bucket &bucket = sample.plan.entries[0].buckets[0];
  bucket.tensors.push_back(dense(BufferKind::Arena, 0, 0, DType::F32, {0}));
  const TensorId none = id(uint32_t(bucket.tensors.size() - 1));
  // Between the last host call and the end, and in front of the first record.
  bucket.records.push_back({Memset{none, 0}});
  bucket.records.insert(bucket.records.begin(),
                        {HostCall{"visual.gate", "forward", {id(0)}, {id(5), id(6)}}});
  Result<Context> context = create(sample, gate);
  ASSERT_TRUE(context.isOk()) << context.status().message();
  std::vector<float> x = {0, 1, 2, 3, 4, 5, 6, 7}, y(8);
  const std::vector<int64_t> sizes = {2, 4};
  const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
      out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  EXPECT_TRUE(context->run("gated", {&in, 1}, {&out, 1}).isOk());
  EXPECT_EQ(y, gated(0));
  EXPECT_EQ(context->stats("gated", 0)->graphNodes, 2u);
}

TEST_F(SplitContexts, WarmUpReadsZerosAsResultsOfHostCalls) {
  std::vector<std::vector<float>> read; // What "aten::add" reads of the host call before it.
  provider_.ops["aten::add"] = [&](const FakeCall &f, void *stream) {
    const auto *x = static_cast<const float *>(f.arguments[0]);
    return doWork(stream, [&read, x] { read.emplace_back(x, x + 8); });
  };
  SamplePlan sample = hostPlan();
  sample.plan.entries.resize(1);
  ASSERT_TRUE(create(sample, gate).isOk());
  EXPECT_EQ(read, std::vector(3, std::vector<float>(8)));
}

TEST_F(SplitContexts, ProfilesMakeHostCalls) {
  int calls = 0;
  Result<Context> context = create(hostPlan(), [&](auto in, auto out, void *stream) {
    ++calls;
    return gate(in, out, stream);
  });
  ASSERT_TRUE(context.isOk()) << context.status().message();
  const auto times = context->profile("gated", 0, 2);
  ASSERT_TRUE(times.isOk()) << times.status().message();
  EXPECT_EQ(times->size(), 4u);
  EXPECT_EQ((*times)[1].size(), 2u);
  EXPECT_EQ(calls, 2 * (3 + 2)); // Three warm-up runs.
}

} // namespace
} // namespace cgc::test
