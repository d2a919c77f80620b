// Programmatic edges are made only to kernels whose code waits on the GPU at hand.
#include "tests/conformance/cuda_fixture.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace cgc::test {
namespace {

constexpr int kKernels = 6;
constexpr int64_t kRows = 3;

/// y = norm(...norm(x) + bias...) + bias: each kernel reads what the one before it writes.
SamplePlan normsPlan() {
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cuda;
  plan.producer = "test";
  plan.weights = {{.name = "bias", .dtype = DType::F32, .sizes = {kColumns}}};
  sample.weights = {floatBytes(randomFloats(kColumns, 1))};
  const std::vector<int64_t> sizes = {kRows, kColumns};
  const uint64_t bytes = kRows * kColumns * sizeof(float);
  Bucket bucket;
  bucket.inputs = {{"x", DType::F32, sizes}};
  bucket.outputs = {{"y", DType::F32, sizes}};
  bucket.arenaBytes = kKernels * bytes;
  bucket.tensors = {dense(BufferKind::Weight, 0, 0, DType::F32, {kColumns}),
                    dense(BufferKind::Input, 0, 0, DType::F32, sizes)};
  for (int i = 0; i < kKernels; ++i) {
    const bool isLast = i + 1 == kKernels;
    bucket.tensors.push_back(isLast ? dense(BufferKind::Output, 0, 0, DType::F32, sizes)
                                    : dense(BufferKind::Arena, 0, i * bytes, DType::F32, sizes));
    bucket.records.push_back(
        {layerNorm(DType::F32, kRows, kColumns, id(i + 1), kNoTensor, id(0), id(i + 2))});
  }
  plan.entries = {{"main", {bucket}}};
  return sample;
}

class Edges : public PlanTest {
protected:
  ~Edges() override {
    engine_.reset();
    fake_cuda::reset();
  }

  std::vector<float> replay(Context &context) {
    const std::vector<int64_t> sizes = {kRows, kColumns};
    std::vector<float> x = randomFloats(kRows * kColumns, 2), y(x.size());
    const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
        out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    const Status status = context.run("main", {&in, 1}, {&out, 1});
    EXPECT_TRUE(status.isOk()) << status.message();
    return y;
  }

  /// The programmatic edges of the graph that a caller captures.
  size_t programmaticEdges(Context &context) {
    const std::vector<int64_t> sizes = {kRows, kColumns};
    void *memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 2 * kRows * kColumns * sizeof(float)), cudaSuccess);
    auto *const x = static_cast<float *>(memory);
    const TensorView in{x, DType::F32, DeviceKind::Cuda, sizes, {}},
        out{x + kRows * kColumns, DType::F32, DeviceKind::Cuda, sizes, {}};
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    const Status status = context.run("main", {&in, 1}, {&out, 1}, stream);
    EXPECT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    size_t count = 2 * kKernels;
    std::vector<cudaGraphNode_t> from(count), to(count);
    std::vector<cudaGraphEdgeData> data(count);
    EXPECT_EQ(cudaGraphGetEdges(graph, from.data(), to.data(), data.data(), &count), cudaSuccess);
    data.resize(count);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    return std::ranges::count(data, cudaGraphDependencyTypeProgrammatic, &cudaGraphEdgeData::type);
  }
};

TEST_F(Edges, AreProgrammaticWhereTheCodeOfTheKernelWaits) {
  for (const int major : {8, 9, 10, 12})
    for (unsigned seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(testing::Message() << "sm_" << major << "0, seed " << seed);
      fake_cuda::reset({.seed = seed, .major = major});
      load(normsPlan());
      {
        Context graph = context(ExecutorKind::Graph), stream = context(ExecutorKind::Stream);
        EXPECT_EQ(replay(graph), replay(stream));
        EXPECT_EQ(programmaticEdges(stream), major == 9 ? kKernels - 1 : 0);
      }
      engine_.reset();
    }
}

} // namespace
} // namespace cgc::test
