// Persistent GEMMs with a tail launch on the caller's device tensors: both launches of the record
// read and write the tensors where they are.
#include "backend/gemm_record.h"
#include "runtime/exec/gpu.h"
#include "runtime/kernels/gemm/gemm.h"
#include "tests/conformance/cuda_fixture.h"
#include "tests/conformance/element_bytes.h"

namespace cgc::test {
namespace {

/// Five tiles of 256 rows, the last one of which is not whole: wide clusters compute four of them,
/// and the tail launch the other one.
constexpr int64_t kM = 1100, kN = 64, kK = 64;

/// y = x w^T in f16.
SamplePlan wideGemmPlan() {
  const GemmTile &tile = *std::ranges::find(gemmTiles(), "128x256_persistent", &GemmTile::name);
  const backend::GemmProblem problem{.m = kM,
                                     .n = kN,
                                     .k = kK,
                                     .x = {kK, kBufferAlignment},
                                     .w = {kK, kBufferAlignment},
                                     .y = {kN, kBufferAlignment}};
  const backend::GemmKernelChoice choice{
      {DType::F16, &tile}, tile.stagesIn(kGemmMaxSharedBytes), 132};
  SamplePlan sample;
  sample.plan.target = DeviceKind::Cuda;
  sample.plan.producer = "test";
  sample.plan.weights = {{.name = "w", .dtype = DType::F16, .sizes = {kN, kK}}};
  sample.weights = {encode(DType::F16, randomFloats(kN * kK, 1))};
  Bucket bucket;
  bucket.inputs = {{"x", DType::F16, {kM, kK}}};
  bucket.outputs = {{"y", DType::F16, {kM, kN}}};
  bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F16, {kM, kK}),
                    dense(BufferKind::Weight, 0, 0, DType::F16, {kN, kK}),
                    dense(BufferKind::Output, 0, 0, DType::F16, {kM, kN})};
  bucket.records = {{backend::encodeGemm({problem, {.x = id(0), .w = id(1), .y = id(2)}, choice})}};
  sample.plan.entries = {{"main", {bucket}}};
  return sample;
}

/// Tensors in the GPU's memory, of which y holds another value before each run.
class Tensors final {
public:
  Tensors() {
    EXPECT_EQ(cudaMalloc(&x_, kXBytes), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&y_, kYBytes), cudaSuccess);
  }
  Tensors(const Tensors &) = delete;
  ~Tensors() {
    (void)cudaFree(x_);
    (void)cudaFree(y_);
  }
  void set(const std::vector<std::byte> &x) const {
    EXPECT_EQ(cudaMemcpy(x_, x.data(), kXBytes, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemset(y_, 0x11, kYBytes), cudaSuccess);
  }
  Status run(Context &context, cudaStream_t stream = nullptr) const {
    const TensorView in{x_, DType::F16, DeviceKind::Cuda, xSizes_, {}},
        out{y_, DType::F16, DeviceKind::Cuda, ySizes_, {}};
    return context.run("main", {&in, 1}, {&out, 1}, stream);
  }
  std::vector<std::byte> y() const {
    std::vector<std::byte> bytes(kYBytes);
    EXPECT_EQ(cudaMemcpy(bytes.data(), y_, kYBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return bytes;
  }
  static std::vector<std::byte> randomX(unsigned seed) {
    return encode(DType::F16, randomFloats(kM * kK, seed));
  }

private:
  static constexpr size_t kXBytes = kM * kK * 2, kYBytes = kM * kN * 2;
  const std::vector<int64_t> xSizes_ = {kM, kK}, ySizes_ = {kM, kN};
  void *x_ = nullptr, *y_ = nullptr;
};

class TailLaunch : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped())
      return;
    if (findGpu(0)->major != 9)
      GTEST_SKIP() << "the kernel needs sm_90a";
    load(wideGemmPlan());
  }
  /// The result on static buffers, without a graph.
  std::vector<std::byte> expected(const std::vector<std::byte> &x) {
    Result<Context> context =
        Context::create(*engine_, {.executor = ExecutorKind::Stream, .addressSets = 0});
    const Tensors tensors;
    tensors.set(x);
    EXPECT_TRUE(context.isOk() && tensors.run(*context).isOk());
    return tensors.y();
  }
};

TEST_F(TailLaunch, BothLaunchesUseTheCallersTensors) {
  Result<Context> context = Context::create(*engine_, {.addressSets = 2});
  ASSERT_TRUE(context.isOk()) << context.status().message();
  ASSERT_EQ(context->stats("main", 0)->graphNodes, 2u) << "the kernel has a tail launch";
  // The third set takes over an executable: nodes are set instead of instantiated.
  const Tensors sets[3];
  for (const unsigned set : {0, 1, 0, 2, 1}) {
    const std::vector<std::byte> x = Tensors::randomX(set);
    sets[set].set(x);
    const Status status = sets[set].run(*context);
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(sets[set].y(), expected(x)) << set;
  }
}

TEST_F(TailLaunch, ACallersGraphHasBothLaunchesOnItsTensors) {
  Result<Context> context = Context::create(*engine_);
  ASSERT_TRUE(context.isOk()) << context.status().message();
  const Tensors tensors;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  const Status status = tensors.run(*context, stream);
  EXPECT_TRUE(status.isOk()) << status.message();
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  for (const unsigned seed : {7, 8}) {
    const std::vector<std::byte> x = Tensors::randomX(seed);
    tensors.set(x);
    EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(tensors.y(), expected(x)) << seed;
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

} // namespace
} // namespace cgc::test
