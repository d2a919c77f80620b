// Runs that use the caller's device tensors where they are, and runs in the caller's graphs,
// compute the same as runs that copy.
#include "tests/conformance/cuda_fixture.h"

namespace cgc::test {
namespace {

/// Memory of the GPU, freed by the destructor.
class Memory final {
public:
  explicit Memory(size_t bytes) : bytes_(bytes) {
    EXPECT_EQ(cudaMalloc(&data_, bytes), cudaSuccess);
  }
  explicit Memory(const std::vector<float> &values) : Memory(values.size() * sizeof(float)) {
    set(values);
  }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory() { (void)cudaFree(data_); }

  void *data(size_t offset = 0) const { return static_cast<std::byte *>(data_) + offset; }
  void set(const std::vector<float> &values, size_t offset = 0) const {
    EXPECT_EQ(cudaMemcpy(data(offset), values.data(), values.size() * sizeof(float),
                         cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  template <class T = float> std::vector<T> get(size_t count, size_t offset = 0) const {
    std::vector<T> values(count);
    EXPECT_LE(offset + count * sizeof(T), bytes_);
    EXPECT_EQ(cudaMemcpy(values.data(), data(offset), count * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

private:
  void *data_ = nullptr;
  size_t bytes_;
};

class InPlace : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped())
      return;
    load(chainPlan());
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~InPlace() override {
    if (stream_)
      (void)cudaStreamDestroy(stream_);
  }

  struct Views {
    Views(int64_t rows, const TensorView &x, const TensorView &y, const TensorView &flags)
        : sizes{rows, kColumns}, in(x), outs{y, flags} {
      in.sizes = outs[0].sizes = sizes;
      in.dtype = outs[0].dtype = DType::F32;
      outs[1].sizes = flagSizes;
      outs[1].dtype = DType::U8;
    }
    Views(const Views &) = delete;
    std::vector<int64_t> sizes, flagSizes = {3};
    TensorView in, outs[2];
  };
  static TensorView onDevice(void *data) { return {data, DType::F32, DeviceKind::Cuda, {}, {}}; }
  static TensorView onHost(void *data) { return {data, DType::F32, DeviceKind::Cpu, {}, {}}; }

  static Status run(Context &context, const Views &views, cudaStream_t stream = nullptr) {
    return context.run("main", {&views.in, 1}, views.outs, stream);
  }
  /// The result of a context that copies.
  std::vector<float> expected(const std::vector<float> &x) {
    Context context = this->context(ExecutorKind::Stream);
    return PlanTest::run(context, x)->y;
  }
  static std::vector<float> input(int64_t rows, unsigned seed) {
    return randomFloats(rows * kColumns, seed);
  }
  static constexpr size_t kRow = kColumns * sizeof(float);

  /// Ends the capture of `stream_` and replays it.
  class Replay final {
  public:
    explicit Replay(cudaStream_t stream) : stream_(stream) {
      EXPECT_EQ(cudaStreamEndCapture(stream, &graph_), cudaSuccess);
      EXPECT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
    }
    Replay(const Replay &) = delete;
    ~Replay() {
      (void)cudaGraphExecDestroy(exec_);
      (void)cudaGraphDestroy(graph_);
    }
    void operator()() const {
      EXPECT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    }

  private:
    cudaStream_t stream_;
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t exec_ = nullptr;
  };

  cudaStream_t stream_ = nullptr;
};

/// More sets of addresses than the context keeps, in turn, for each bucket.
TEST_F(InPlace, AnySetOfAddressesGivesTheSameBits) {
  Context context = this->context(ExecutorKind::Graph);
  constexpr int kSets = 7;
  for (const int64_t rows : {3, 1, 5}) {
    std::vector<std::unique_ptr<Memory>> xs, ys, flags;
    std::vector<std::vector<float>> results;
    for (int i = 0; i < kSets; ++i) {
      xs.push_back(std::make_unique<Memory>(input(rows, i)));
      ys.push_back(std::make_unique<Memory>(rows * kRow));
      flags.push_back(std::make_unique<Memory>(3));
      results.push_back(expected(input(rows, i)));
    }
    for (int n = 0; n < 40; ++n) {
      const int i = n * (n + 1) / 2 % kSets;
      ys[i]->set(std::vector<float>(rows * kColumns, -1));
      const Views views(rows, onDevice(xs[i]->data()), onDevice(ys[i]->data()),
                        onDevice(flags[i]->data()));
      ASSERT_TRUE(run(context, views, n % 2 ? stream_ : nullptr).isOk());
      ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
      ASSERT_EQ(ys[i]->get(rows * kColumns), results[i]) << "run " << n;
      ASSERT_EQ(flags[i]->get<uint8_t>(3), (std::vector<uint8_t>{5, 5, 5}));
    }
  }
}

/// Tensors that cannot be used where they are, beside those that can.
TEST_F(InPlace, OtherTensorsAreCopied) {
  Context context = this->context(ExecutorKind::Graph);
  const int64_t rows = 3;
  const std::vector<float> x = input(rows, 1), result = expected(x);
  const size_t count = x.size();
  Memory unaligned((rows + 1) * kRow), y((rows + 1) * kRow), flags(3);
  unaligned.set(x, 4);
  std::vector<float> hostX = x, hostY(count);
  std::vector<uint8_t> hostFlags(3);
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_TRUE(run(context, Views(rows, onDevice(unaligned.data(4)), onDevice(y.data()),
                                   onDevice(flags.data())))
                    .isOk());
    EXPECT_EQ(y.get(count), result);
    EXPECT_TRUE(run(context, Views(rows, onHost(hostX.data()), onDevice(y.data(8)),
                                   onHost(hostFlags.data())))
                    .isOk());
    EXPECT_EQ(y.get(count, 8), result);
    EXPECT_EQ(hostFlags, (std::vector<uint8_t>{5, 5, 5}));
    EXPECT_TRUE(run(context, Views(rows, onDevice(unaligned.data(4)), onHost(hostY.data()),
                                   onDevice(flags.data())))
                    .isOk());
    EXPECT_EQ(hostY, result);
    // An output that overlaps the input.
    Memory both(x);
    EXPECT_TRUE(run(context, Views(rows, onDevice(both.data()), onDevice(both.data()),
                                   onDevice(flags.data())))
                    .isOk());
    EXPECT_EQ(both.get(count), result);
  }
}

TEST_F(InPlace, TheStaticBuffersAreTensorsToo) {
  Context context = this->context(ExecutorKind::Graph);
  const int64_t rows = 5; // Bucket 0.
  const std::vector<float> x = input(rows, 1), result = expected(x);
  const Result<TensorView> in = context.inputBuffer("main", 0, 0),
                           y = context.outputBuffer("main", 0, 0),
                           flags = context.outputBuffer("main", 0, 1);
  ASSERT_TRUE(in.isOk() && y.isOk() && flags.isOk());
  ASSERT_EQ(cudaMemcpy(in->data, x.data(), rows * kRow, cudaMemcpyHostToDevice), cudaSuccess);
  const TensorView outs[] = {*y, *flags};
  ASSERT_TRUE(context.run("main", {&*in, 1}, outs).isOk());
  std::vector<float> values(x.size());
  ASSERT_EQ(cudaMemcpy(values.data(), y->data, rows * kRow, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(values, result);
  // The output of a run as the input of the next one, which writes it.
  const Views chained(rows, onDevice(y->data), onDevice(y->data), onDevice(flags->data));
  ASSERT_TRUE(run(context, chained).isOk());
  ASSERT_EQ(cudaMemcpy(values.data(), y->data, rows * kRow, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(values, expected(result));
}

TEST_F(InPlace, ARunInTheCallersGraphReplays) {
  Context context = this->context(ExecutorKind::Graph);
  const int64_t rows = 3;
  const size_t count = rows * kColumns;
  // Another stream of the capture brings the input and takes the output away.
  Memory source(count * sizeof(float)), x(count * sizeof(float)), y(count * sizeof(float)),
      flags(3), after(count * sizeof(float));
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(x.data(), source.data(), count * sizeof(float),
                            cudaMemcpyDeviceToDevice, stream_),
            cudaSuccess);
  const Status status =
      run(context, Views(rows, onDevice(x.data()), onDevice(y.data()), onDevice(flags.data())),
          stream_);
  ASSERT_TRUE(status.isOk()) << status.message();
  ASSERT_EQ(cudaMemcpyAsync(after.data(), y.data(), count * sizeof(float), cudaMemcpyDeviceToDevice,
                            stream_),
            cudaSuccess);
  const Replay replay(stream_);
  for (unsigned seed = 0; seed < 5; ++seed) {
    source.set(input(rows, seed));
    replay();
    EXPECT_EQ(after.get(count), expected(input(rows, seed))) << seed;
    // Other runs of the context, between replays, neither disturb them nor are disturbed.
    const Result<Outputs> other = PlanTest::run(context, input(rows, seed + 10));
    ASSERT_TRUE(other.isOk());
    EXPECT_EQ(other->y, expected(input(rows, seed + 10)));
  }
}

/// The input is in pinned host memory and the output at an address that is not aligned.
TEST_F(InPlace, ARunInTheCallersGraphCopiesOtherTensors) {
  Context context = this->context(ExecutorKind::Graph);
  const int64_t rows = 1;
  float *x = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void **>(&x), kRow), cudaSuccess);
  {
    Memory y(2 * kRow), flags(3);
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    const Status status =
        run(context, Views(rows, onHost(x), onDevice(y.data(4)), onDevice(flags.data())), stream_);
    ASSERT_TRUE(status.isOk()) << status.message();
    const Replay replay(stream_);
    for (unsigned seed = 0; seed < 3; ++seed) {
      std::ranges::copy(input(rows, seed), x);
      replay();
      EXPECT_EQ(y.get(kColumns, 4), expected(input(rows, seed))) << seed;
    }
  }
  EXPECT_EQ(cudaFreeHost(x), cudaSuccess);
}

/// Runs in one capture share the arena, on whichever streams they are.
TEST_F(InPlace, RunsInOneCaptureFollowOneAnother) {
  Context context = this->context(ExecutorKind::Graph);
  const int64_t rows = 5;
  const size_t count = rows * kColumns;
  cudaStream_t side = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&fork), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&join), cudaSuccess);
  {
    Memory x(count * sizeof(float)), other(count * sizeof(float)), y(count * sizeof(float)),
        z(count * sizeof(float)), otherY(count * sizeof(float)), flags(3);
    const auto views = [&](const Memory &in, const Memory &out) {
      return std::make_unique<Views>(rows, onDevice(in.data()), onDevice(out.data()),
                                     onDevice(flags.data()));
    };
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(fork, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(side, fork, 0), cudaSuccess);
    ASSERT_TRUE(run(context, *views(x, y), stream_).isOk());
    ASSERT_TRUE(run(context, *views(other, otherY), side).isOk());
    ASSERT_TRUE(run(context, *views(y, z), stream_).isOk());
    ASSERT_EQ(cudaEventRecord(join, side), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(stream_, join, 0), cudaSuccess);
    const Replay replay(stream_);
    for (unsigned seed = 0; seed < 20; ++seed) {
      x.set(input(rows, seed));
      other.set(input(rows, seed + 100));
      replay();
      ASSERT_EQ(z.get(count), expected(expected(input(rows, seed)))) << seed;
      ASSERT_EQ(otherY.get(count), expected(input(rows, seed + 100))) << seed;
    }
  }
  EXPECT_EQ(cudaEventDestroy(join), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(side), cudaSuccess);
}

TEST_F(InPlace, ALentGraphIsAChildOfTheCallers) {
  Context context = this->context(ExecutorKind::Graph);
  const size_t bucket = 2;
  const int64_t rows = 3;
  const Result<void *> lent = context.graph("main", bucket);
  ASSERT_TRUE(lent.isOk()) << lent.status().message();
  const Result<TensorView> in = context.inputBuffer("main", bucket, 0),
                           out = context.outputBuffer("main", bucket, 0);
  ASSERT_TRUE(in.isOk() && out.isOk());
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, cudaGraph_t(*lent)), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  for (unsigned seed = 0; seed < 3; ++seed) {
    const std::vector<float> x = input(rows, seed);
    std::vector<float> y(x.size());
    ASSERT_EQ(cudaMemcpy(in->data, x.data(), rows * kRow, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(y.data(), out->data, rows * kRow, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(y, expected(x)) << seed;
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(InPlace, WhatCannotBeCapturedIsRefusedAndTheCaptureGoesOn) {
  Memory x(kRow), y(kRow), flags(3);
  const Views views(1, onDevice(x.data()), onDevice(y.data()), onDevice(flags.data()));
  Result<Context> late = Context::create(*engine_, {.capture = CaptureTime::OnFirstUse});
  ASSERT_TRUE(late.isOk());
  Context plain = context(ExecutorKind::Stream), graph = context(ExecutorKind::Graph);
  EXPECT_EQ(plain.graph("main", 0).status().code(), Code::Unsupported);
  EXPECT_EQ(graph.graph("main", 9).status().code(), Code::Usage);
  EXPECT_EQ(graph.inputBuffer("main", 0, 1).status().code(), Code::Usage);
  x.set(input(1, 1));
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  const Status unprepared = run(*late, views, stream_);
  EXPECT_EQ(unprepared.code(), Code::Usage);
  EXPECT_THAT(unprepared.message(), testing::HasSubstr("Context::prepare"));
  EXPECT_EQ(run(plain, views, stream_).code(), Code::Unsupported); // It has LibTorch's records.
  EXPECT_TRUE(run(graph, views, stream_).isOk());
  const Replay replay(stream_);
  replay();
  EXPECT_EQ(y.get(kColumns), expected(input(1, 1)));
}

} // namespace
} // namespace cgc::test
