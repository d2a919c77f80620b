// Checks of indices in device memory, by a kernel before those of the entry.
#include "tests/conformance/cuda_fixture.h"

#include <map>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kCheckedRows = 3;

/// y = norm(x), beside ids of which the last two in each row index 10 places.
SamplePlan plan() {
  SamplePlan sample;
  sample.plan.target = DeviceKind::Cuda;
  sample.plan.producer = "test";
  const std::vector<int64_t> sizes = {kCheckedRows, kColumns};
  Bucket bucket;
  bucket.inputs = {
      {"x", DType::F32, sizes},
      {.name = "ids",
       .dtype = DType::I32,
       .sizes = {kCheckedRows, 3},
       .indexBounds = {{.end = 10, .offset = 1, .sizes = {kCheckedRows, 2}, .strides = {3, 1}}}}};
  bucket.outputs = {{"y", DType::F32, sizes}};
  bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, sizes),
                    dense(BufferKind::Output, 0, 0, DType::F32, sizes)};
  bucket.records = {
      {layerNorm(DType::F32, kCheckedRows, kColumns, id(0), kNoTensor, kNoTensor, id(1))}};
  sample.plan.entries = {{"main", {bucket}}};
  return sample;
}

class IndexChecks : public CudaTest {
protected:
  static constexpr size_t kCount = kCheckedRows * kColumns, kIds = 9;

  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped())
      return;
    load(plan());
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory_, 2 * kCount * sizeof(float) + kIds * sizeof(int32_t)),
              cudaSuccess);
    ASSERT_EQ(cudaMemset(memory_, 0, 2 * kCount * sizeof(float)), cudaSuccess);
    setIds({});
  }
  ~IndexChecks() override {
    if (stream_)
      (void)cudaStreamDestroy(stream_);
    (void)cudaFree(memory_);
  }

  float *x() const { return static_cast<float *>(memory_); }
  int32_t *ids() const { return reinterpret_cast<int32_t *>(x() + 2 * kCount); }
  /// Zeros but for these elements.
  void setIds(const std::map<int, int32_t> &elements) const {
    std::vector<int32_t> values(kIds);
    for (const auto &[i, value] : elements)
      values[i] = value;
    EXPECT_EQ(cudaMemcpy(ids(), values.data(), kIds * sizeof(int32_t), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  Status run(Context &context, cudaStream_t stream) const {
    const std::vector<int64_t> sizes = {kCheckedRows, kColumns}, idSizes = {kCheckedRows, 3};
    const TensorView in[] = {{x(), DType::F32, DeviceKind::Cuda, sizes, {}},
                             {ids(), DType::I32, DeviceKind::Cuda, idSizes, {}}},
                     out{x() + kCount, DType::F32, DeviceKind::Cuda, sizes, {}};
    return context.run("main", in, {&out, 1}, stream);
  }
  void wait() const { EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess); }

  cudaStream_t stream_ = nullptr;
  void *memory_ = nullptr;
};

TEST_F(IndexChecks, ACallThatDoesNotWaitFailsTheNextOne) {
  for (const ExecutorKind executor : {ExecutorKind::Graph, ExecutorKind::Stream}) {
    Context context = this->context(executor);
    setIds({{3, 99}}); // Not an index.
    EXPECT_TRUE(run(context, stream_).isOk());
    wait();
    setIds({{5, 10}, {7, -1}});
    EXPECT_TRUE(run(context, stream_).isOk());
    wait();
    setIds({{5, 9}});
    const Status next = run(context, stream_);
    EXPECT_EQ(next.code(), Code::Usage);
    EXPECT_THAT(next.message(),
                AllOf(HasSubstr("an earlier run"), HasSubstr("input 'ids': element [1,2] is 10"),
                      HasSubstr("from 0 to 9")));
    EXPECT_TRUE(run(context, stream_).isOk()); // Once.
    wait();
  }
}

TEST_F(IndexChecks, ACallThatWaitsForItsOutputsFailsItself) {
  Context context = this->context(ExecutorKind::Graph);
  setIds({{8, -1}});
  const Status own = run(context, nullptr);
  EXPECT_THAT(own.message(),
              AllOf(HasSubstr("input 'ids': element [2,2] is -1"), Not(HasSubstr("earlier"))));
  setIds({});
  EXPECT_TRUE(run(context, nullptr).isOk());
}

TEST_F(IndexChecks, ReplaysOfACallersGraphAreChecked) {
  Context context = this->context(ExecutorKind::Graph);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_TRUE(run(context, stream_).isOk());
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  setIds({{1, 1000}});
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  wait();
  EXPECT_THAT(run(context, stream_).message(), HasSubstr("input 'ids': element [0,1] is 1000"));
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

} // namespace
} // namespace cgc::test
