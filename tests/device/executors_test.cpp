// Each executor gives the right results for a plan, in any order of buckets, streams and threads;
// those of the stream and the graph executor are bit-equal.
#include "tests/conformance/cuda_fixture.h"

#include <chrono>
#include <cmath>
#include <future>
#include <thread>

namespace cgc::test {
namespace {

using testing::Each;

class Executors : public ExecutorTest {};

CGC_ON_ALL_EXECUTORS(Executors);

/// Executors with device memory and streams.
class GpuExecutors : public ExecutorTest {};
CGC_ON_GPU_EXECUTORS(GpuExecutors);

/// The chain in double precision.
std::vector<float> reference(const std::vector<float> &x) {
  const std::vector<float> weight = randomFloats(kColumns, 1), bias = randomFloats(kColumns, 2);
  std::vector<double> v(x.begin(), x.end());
  for (int pass = 0; pass < 2; ++pass)
    for (size_t row = 0; row < v.size(); row += kColumns) {
      double mean = 0, variance = 0;
      for (int c = 0; c < kColumns; ++c)
        mean += v[row + c] / kColumns;
      for (int c = 0; c < kColumns; ++c)
        variance += (v[row + c] - mean) * (v[row + c] - mean) / kColumns;
      for (int c = 0; c < kColumns; ++c)
        v[row + c] =
            (v[row + c] - mean) / std::sqrt(variance + 1e-5) * (pass == 0 ? weight[c] : 1) +
            (pass == 0 ? bias[c] : weight[c]);
    }
  return {v.begin(), v.end()};
}

TEST_P(Executors, GiveTheRightNumbers) {
  load(chainPlan());
  Context context = this->context(GetParam());
  for (const int64_t rows : {1, 3, 5, 1}) {
    const std::vector<float> x = randomFloats(rows * kColumns, 100 + rows), expected = reference(x);
    const Result<Outputs> out = run(context, x);
    ASSERT_TRUE(out.isOk()) << out.status().message();
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(out->y[i], expected[i], 1e-4) << "element " << i << " of " << rows << " rows";
    EXPECT_THAT(out->flags, Each(5));
  }
}

TEST_P(Executors, CountTheirNodes) {
  load(chainPlan());
  const Context context = this->context(GetParam());
  for (size_t bucket = 0; bucket < 3; ++bucket)
    EXPECT_EQ(context.stats("main", bucket)->graphNodes,
              GetParam() == ExecutorKind::Graph ? 5u : 0u);
}

TEST_F(CudaTest, ExecutorsAreBitEqualOver1000ReplaysThatAllocateNothing) {
  load(chainPlan());
  Context stream = context(ExecutorKind::Stream), graph = context(ExecutorKind::Graph);
  size_t before = 0, after = 0, total = 0;
  for (unsigned i = 0; i < 1000; ++i) {
    const int64_t rows = 1 + 2 * (i % 3);
    const std::vector<float> x = randomFloats(rows * kColumns, i);
    const Result<Outputs> a = run(stream, x), b = run(graph, x);
    ASSERT_TRUE(a.isOk() && b.isOk()) << a.status().message() << b.status().message();
    ASSERT_EQ(*a, *b) << "replay " << i;
    ASSERT_EQ(std::memcmp(a->y.data(), b->y.data(), x.size() * sizeof(float)), 0) << "replay " << i;
    ASSERT_EQ(cudaMemGetInfo(i == 10 ? &before : &after, &total), cudaSuccess);
  }
  EXPECT_EQ(before, after) << "device memory changed while replaying";
}

TEST_P(Executors, DoNotReadMemoryThatNobodyWrote) {
  load(chainPlan());
  Context plain = context(GetParam()), poisoned = context(GetParam(), /*poison=*/true);
  for (const int64_t rows : {5, 1, 3}) {
    const std::vector<float> x = randomFloats(rows * kColumns, rows);
    const Result<Outputs> a = run(plain, x), b = run(poisoned, x);
    ASSERT_TRUE(a.isOk() && b.isOk());
    EXPECT_EQ(*a, *b);
  }
}

TEST_P(Executors, PoisonShowsARecordThatDoesNotWrite) {
  provider_.ops["aten::clone"] = [](const FakeCall &, void *) { return Status::ok(); };
  SamplePlan sample = chainPlan();
  // The clone writes to memory that no other record writes.
  for (Bucket &bucket : sample.plan.entries[0].buckets) {
    TensorRef own = bucket.tensors[1];
    own.slot.offset = bucket.arenaBytes;
    bucket.arenaBytes *= 2;
    bucket.tensors.push_back(own);
    std::get<AtenCall>(bucket.records[2].op).outputs = {id(7)};
    std::get<KernelLaunch>(bucket.records[4].op).reads[0] = id(7);
  }
  load(sample);
  Context context = this->context(GetParam(), /*poison=*/true);
  const Result<Outputs> out = run(context, randomFloats(kColumns, 1));
  ASSERT_TRUE(out.isOk());
  EXPECT_THAT(out->y, Each(testing::IsNan()));
}

TEST_P(Executors, RunWhatHasEmptyOutputsOnly) {
  // A plan without records, and one with a record that does nothing.
  for (const bool hasRecord : {false, true}) {
    SamplePlan sample = chainPlan();
    Bucket bucket;
    bucket.inputs = {{"x", DType::F32, {2, 3}}};
    bucket.outputs = {{"y", DType::F32, {2, 0}}};
    if (hasRecord) {
      bucket.tensors = {dense(BufferKind::Output, 0, 0, DType::F32, {2, 0})};
      bucket.records = {{Memset{id(0), 0}}};
    }
    sample.plan.entries[0].buckets = {bucket};
    load(sample);
    Context context = this->context(GetParam(), /*poison=*/true);
    const std::vector<int64_t> sizes = {2, 3}, none = {2, 0};
    std::vector<float> x(6);
    const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    const TensorView out{nullptr, DType::F32, DeviceKind::Cpu, none, {}};
    const Status status = context.run("main", {&in, 1}, {&out, 1});
    EXPECT_TRUE(status.isOk()) << status.message();
    const auto times = context.profile("main", 0, 3);
    ASSERT_TRUE(times.isOk()) << times.status().message();
    EXPECT_EQ(times->size(), bucket.records.size());
  }
}

/// Device memory, freed by the destructor.
struct DeviceFloats {
  explicit DeviceFloats(size_t count) : bytes(count * sizeof(float)) {
    EXPECT_EQ(cudaMalloc(&data, bytes), cudaSuccess);
  }
  ~DeviceFloats() { cudaFree(data); }
  void *data = nullptr;
  size_t bytes;
};

TEST_P(GpuExecutors, TakeDeviceMemoryAndTheCallersStreams) {
  // Each run pauses between its records, so that a run on another stream could overtake it.
  provider_.ops["aten::clone"] = [](const FakeCall &f, void *stream) -> Status {
    const auto wait = [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
    if (cudaLaunchHostFunc(cudaStream_t(stream), wait, nullptr) != cudaSuccess)
      return {Code::Device, "cannot wait on the stream"};
    return cloneOp(f, stream);
  };
  load(chainPlan());
  Context context = this->context(GetParam()), other = this->context(ExecutorKind::Stream);
  cudaStream_t streams[2];
  for (cudaStream_t &stream : streams)
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  constexpr int kRuns = 50;
  const int64_t rows = 3;
  const size_t count = rows * kColumns;
  const std::vector<int64_t> sizes = {rows, kColumns}, flagSizes = {3};
  std::vector<std::unique_ptr<DeviceFloats>> ins, outs;
  // In device memory, because a copy to pageable memory would wait for the run.
  const DeviceFloats flags(1);
  // Enqueues all runs without a wait, on alternating streams: runs must not overlap, because they
  // share the arena.
  for (int i = 0; i < kRuns; ++i) {
    ins.push_back(std::make_unique<DeviceFloats>(count));
    outs.push_back(std::make_unique<DeviceFloats>(count));
    const std::vector<float> x = randomFloats(count, i);
    const cudaStream_t stream = streams[i / 3 % 2];
    ASSERT_EQ(
        cudaMemcpyAsync(ins[i]->data, x.data(), ins[i]->bytes, cudaMemcpyHostToDevice, stream),
        cudaSuccess);
    const TensorView in{ins[i]->data, DType::F32, DeviceKind::Cuda, sizes, {}};
    const TensorView out[] = {{outs[i]->data, DType::F32, DeviceKind::Cuda, sizes, {}},
                              {flags.data, DType::U8, DeviceKind::Cuda, flagSizes, {}}};
    const Status status = context.run("main", {&in, 1}, out, stream);
    ASSERT_TRUE(status.isOk()) << status.message();
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (int i = 0; i < kRuns; ++i) {
    std::vector<float> y(count);
    ASSERT_EQ(cudaMemcpy(y.data(), outs[i]->data, outs[i]->bytes, cudaMemcpyDeviceToHost),
              cudaSuccess);
    const Result<Outputs> expected = run(other, randomFloats(count, i));
    ASSERT_TRUE(expected.isOk());
    ASSERT_EQ(y, expected->y) << "run " << i;
  }
  for (cudaStream_t stream : streams)
    cudaStreamDestroy(stream);
}

TEST_P(GpuExecutors, RunReturnsWhileTheStreamIsBusyAndAllocatesNothing) {
  load(chainPlan());
  Context context = this->context(GetParam());
  constexpr int64_t kRows = 3;
  const std::vector<int64_t> sizes = {kRows, kColumns}, flagSizes = {3};
  const DeviceFloats x(kRows * kColumns), y(kRows * kColumns), flags(1);
  const TensorView in{x.data, DType::F32, DeviceKind::Cuda, sizes, {}};
  const TensorView out[] = {{y.data, DType::F32, DeviceKind::Cuda, sizes, {}},
                            {flags.data, DType::U8, DeviceKind::Cuda, flagSizes, {}}};
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_TRUE(context.run("main", {&in, 1}, out, stream).isOk());
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  // The stream is blocked until all run() calls have returned, or for a limited time if one waits
  // for it.
  std::promise<void> returned;
  struct Gate {
    std::future<void> open;
    bool gaveUp = false;
  } gate{returned.get_future()};
  ASSERT_EQ(cudaLaunchHostFunc(
                stream,
                [](void *data) {
                  auto *const gate = static_cast<Gate *>(data);
                  gate->gaveUp =
                      gate->open.wait_for(std::chrono::seconds(20)) != std::future_status::ready;
                },
                &gate),
            cudaSuccess);
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(context.run("main", {&in, 1}, out, stream).isOk());
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  (void)cudaGetLastError();
  returned.set_value();
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_FALSE(gate.gaveUp) << "a run waited for the stream";
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(before, after);
  cudaStreamDestroy(stream);
}

TEST_P(Executors, ContextsRunSideBySideInThreads) {
  load(chainPlan());
  Context alone = context(plainExecutor());
  std::vector<std::vector<float>> inputs;
  std::vector<Outputs> expected;
  for (unsigned i = 0; i < 30; ++i) {
    inputs.push_back(randomFloats((1 + 2 * (i % 3)) * kColumns, i));
    Result<Outputs> out = run(alone, inputs.back());
    ASSERT_TRUE(out.isOk());
    expected.push_back(*std::move(out));
  }
  std::vector<std::future<std::string>> threads;
  for (int t = 0; t < 2; ++t)
    threads.push_back(std::async(std::launch::async, [&, t]() -> std::string {
      // Captures while the other thread captures and replays.
      Result<Context> context = Context::create(*engine_, {.executor = GetParam()});
      if (!context.isOk())
        return context.status().message();
      for (int i = 0; i < 300; ++i) {
        const size_t k = (i * 7 + t) % inputs.size();
        const Result<Outputs> out = run(*context, inputs[k]);
        if (!out.isOk() || !(*out == expected[k]))
          return "run " + std::to_string(i) + " differs " + out.status().message();
      }
      return "";
    }));
  for (auto &thread : threads)
    EXPECT_EQ(thread.get(), "");
}

TEST_P(GpuExecutors, ManyContextsShareOneSetOfWeightsAndFreeTheirMemory) {
  load(chainPlan());
  size_t before = 0, after = 0, total = 0;
  {
    Context warm = context(GetParam());
  }
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  for (int i = 0; i < 50; ++i) {
    Context context = this->context(GetParam());
    ASSERT_TRUE(run(context, randomFloats(kColumns, i)).isOk());
  }
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(before, after);
  EXPECT_EQ(provider_.pools, 0);
}

} // namespace
} // namespace cgc::test
