// The CUDA calls of runs on the caller's device tensors and in the caller's captures.
#include "tests/conformance/cuda_fixture.h"
#include "tests/fake_cuda/failing_operator_new.h"

#include <thread>

namespace cgc::test {
namespace {

using fake_cuda::Call;
using testing::ElementsAre;
using testing::Field;

class InPlaceCalls : public PlanTest {
protected:
  InPlaceCalls() {
    fake_cuda::reset();
    load(chainPlan());
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    for (void *&set : memory_)
      EXPECT_EQ(cudaMalloc(&set, 3 * kPart), cudaSuccess);
  }
  ~InPlaceCalls() override {
    for (void *set : memory_)
      (void)cudaFree(set);
    (void)cudaStreamDestroy(stream_);
    engine_.reset();
    fake_cuda::reset();
  }

  /// Runs one row on memory `set`, in which x is at `offset` and y at `yOffset`. Allocates nothing
  /// itself.
  Status enqueue(Context &context, size_t set, size_t offset = 0, size_t yOffset = kPart) {
    auto *const at = static_cast<std::byte *>(memory_[set]);
    const TensorView in{at + offset, DType::F32, DeviceKind::Cuda, sizes_, {}};
    const TensorView outs[] = {{at + yOffset, DType::F32, DeviceKind::Cuda, sizes_, {}},
                               {at + 2 * kPart, DType::U8, DeviceKind::Cuda, flagSizes_, {}}};
    return context.run("main", {&in, 1}, outs, stream_);
  }
  /// enqueue(), and logs the calls.
  Status run(Context &context, size_t set, size_t offset = 0, size_t yOffset = kPart) {
    fake_cuda::clearCalls();
    const Status status = enqueue(context, set, offset, yOffset);
    names_.clear();
    for (const Call &call : fake_cuda::calls())
      names_.push_back(std::string(call.function));
    return status;
  }
  /// Sets x of memory `set`, and y to zeros. The fake GPU's memory is the host's.
  void setX(size_t set, const std::vector<float> &x) {
    auto *const at = static_cast<std::byte *>(memory_[set]);
    std::memcpy(at, x.data(), x.size() * sizeof(float));
    std::memset(at + kPart, 0, kPart);
  }
  std::vector<float> yOf(size_t set) const {
    const auto *const y =
        reinterpret_cast<const float *>(static_cast<const std::byte *>(memory_[set]) + kPart);
    return {y, y + kColumns};
  }
  std::vector<float> expected(const std::vector<float> &x) {
    Context plain = this->context(ExecutorKind::Stream);
    return PlanTest::run(plain, x)->y;
  }
  static size_t countOf(const std::vector<std::string> &names, const std::string &part) {
    return std::ranges::count_if(
        names, [&](const std::string &name) { return name.find(part) != std::string::npos; });
  }

  static constexpr size_t kPart = 2048;
  const std::vector<int64_t> sizes_ = {1, kColumns}, flagSizes_ = {3};
  cudaStream_t stream_ = nullptr;
  void *memory_[6] = {};
  std::vector<std::string> names_;
};

TEST_F(InPlaceCalls, AKnownSetOfTensorsIsOneLaunchWithoutCopies) {
  Context context = this->context(ExecutorKind::Graph);
  for (const size_t set : {0, 1, 2, 3, 0, 3, 2, 1})
    ASSERT_TRUE(run(context, set).isOk());
  EXPECT_THAT(names_, ElementsAre("cudaGetDevice", "cudaStreamGetCaptureInfo",
                                  "cudaStreamWaitEvent", "cudaGraphLaunch", "cudaEventRecord"));
  EXPECT_EQ(fake_cuda::callCounts().allocations, 0u);
  EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
}

TEST_F(InPlaceCalls, ASetTooManyPatchesTheOneThatWasUsedLongestAgo) {
  Context context = this->context(ExecutorKind::Graph);
  for (const size_t set : {0, 1, 2, 3}) {
    ASSERT_TRUE(run(context, set).isOk());
    EXPECT_EQ(countOf(names_, "cudaGraphInstantiate"), 1u);
    EXPECT_EQ(countOf(names_, "cudaMemcpyAsync"), 0u);
  }
  ASSERT_TRUE(run(context, 0).isOk());
  ASSERT_TRUE(run(context, 4).isOk()); // In place of set 1.
  EXPECT_EQ(countOf(names_, "cudaGraphInstantiate"), 0u);
  EXPECT_EQ(countOf(names_, "cudaGraphExecKernelNodeSetParams"), 2u);
  EXPECT_EQ(countOf(names_, "cudaGraphExecMemsetNodeSetParams"), 1u);
  EXPECT_EQ(countOf(names_, "cudaMemcpyAsync"), 0u);
  EXPECT_EQ(fake_cuda::callCounts().allocations, 0u);
  for (const size_t set : {0, 2, 3, 4}) {
    ASSERT_TRUE(run(context, set).isOk());
    EXPECT_EQ(countOf(names_, "SetParams"), 0u) << set;
  }
}

/// torch.cuda.graph captures in global mode, in which CUDA refuses to instantiate a graph.
TEST_F(InPlaceCalls, ANewSetDoesNotDisturbACaptureOfAnotherThread) {
  Context context = this->context(ExecutorKind::Graph);
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  std::thread([&] {
    ASSERT_EQ(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal), cudaSuccess);
  }).join();
  ASSERT_TRUE(run(context, 0).isOk());
  EXPECT_EQ(countOf(names_, "cudaMemcpyAsync"), 0u);
  cudaStreamCaptureStatus status = {};
  EXPECT_EQ(cudaStreamIsCapturing(other, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST_F(InPlaceCalls, AnUnalignedTensorIsCopied) {
  Context context = this->context(ExecutorKind::Graph);
  for (int pass = 0; pass < 2; ++pass)
    ASSERT_TRUE(run(context, 0, 4).isOk());
  EXPECT_EQ(countOf(names_, "cudaMemcpyAsync"), 1u); // The outputs are written where they are.
  EXPECT_EQ(countOf(names_, "SetParams"), 0u);
}

TEST_F(InPlaceCalls, ATensorOfAnotherGpuIsCopied) {
  const std::vector<float> x = randomFloats(kColumns, 1), result = expected(x);
  fake_cuda::reset({.devices = 2});
  Context context = this->context(ExecutorKind::Graph);
  (void)cudaFree(memory_[1]);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory_[1], 3 * kPart), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  for (const size_t set : {0, 1}) {
    setX(set, x);
    ASSERT_TRUE(run(context, set).isOk());
    EXPECT_EQ(countOf(names_, "cudaMemcpyAsync"), set == 0 ? 0u : 3u);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(yOf(set), result);
  }
}

TEST_F(InPlaceCalls, AnOutputThatOverlapsTheInputIsCopiedAsTheInputIs) {
  Context context = this->context(ExecutorKind::Graph);
  for (const size_t yOffset : {size_t(0), kColumns * sizeof(float) - 16}) {
    ASSERT_TRUE(run(context, 0, 0, yOffset).isOk());
    EXPECT_EQ(countOf(names_, "cudaMemcpyAsync"), 2u);
  }
  ASSERT_TRUE(run(context, 0, 0, kColumns * sizeof(float)).isOk()); // Side by side.
  EXPECT_EQ(countOf(names_, "cudaMemcpyAsync"), 0u);
}

TEST_F(InPlaceCalls, WithoutAddressSetsEveryTensorIsCopied) {
  Result<Context> context = Context::create(*engine_, {.addressSets = 0});
  ASSERT_TRUE(context.isOk());
  ASSERT_TRUE(run(*context, 0).isOk());
  EXPECT_EQ(countOf(names_, "cudaMemcpyAsync"), 3u);
}

TEST_F(InPlaceCalls, TheReportCountsTheExecutables) {
  fake_cuda::reset({.execBytes = 5000});
  Context context = this->context(ExecutorKind::Graph);
  const uint64_t captured = engine_->memory().graphs;
  EXPECT_EQ(captured, 3 * 5000u); // Of three buckets.
  ASSERT_TRUE(run(context, 0).isOk());
  EXPECT_EQ(engine_->memory().graphs, captured + 5000);
  EXPECT_EQ(engine_->memory().peak, engine_->memory().total());
  ASSERT_TRUE(run(context, 0).isOk());
  EXPECT_EQ(engine_->memory().graphs, captured + 5000);
  EXPECT_EQ(countOf(names_, "cudaMemGetInfo"), 0u);
}

/// Whatever call fails: the run fails or copies, and the next one is right.
TEST_F(InPlaceCalls, AFailingPatchLeavesNoWrongExecutable) {
  const std::vector<float> x = randomFloats(kColumns, 1);
  const std::vector<float> result = expected(x);
  size_t calls = 0;
  {
    Result<Context> context = Context::create(*engine_, {.addressSets = 1});
    ASSERT_TRUE(run(*context, 0).isOk() && run(*context, 1).isOk());
    calls = names_.size();
  }
  ASSERT_GT(calls, 10u);
  for (int nth = 1; nth <= int(calls); ++nth) {
    Result<Context> context = Context::create(*engine_, {.addressSets = 1});
    ASSERT_TRUE(context.isOk());
    ASSERT_TRUE(run(*context, 0).isOk());               // Then its executable is patched.
    fake_cuda::failAnyCall(nth, cudaErrorInvalidValue); // One of the next run.
    for (const size_t set : {1, 1, 0}) {
      setX(set, x);
      const Status status = run(*context, set);
      ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
      if (status.isOk()) {
        EXPECT_EQ(yOf(set), result) << "call " << nth << ", set " << set;
      }
    }
  }
}

/// A node cannot be set, and there is no host memory at some point of that run.
TEST_F(InPlaceCalls, AHalfPatchedSetIsNotFoundAgain) {
  const std::vector<float> x = randomFloats(kColumns, 1), result = expected(x);
  bool isDone = false;
  for (long allocations = 0; !isDone; ++allocations) {
    Result<Context> context = Context::create(*engine_, {.addressSets = 1});
    ASSERT_TRUE(context.isOk());
    ASSERT_TRUE(run(*context, 0).isOk());
    fake_cuda::failCall("cudaGraphExecKernelNodeSetParams", 2, cudaErrorInvalidValue);
    setX(1, std::vector<float>(kColumns, 7));
    allocationsLeft = allocations;
    isDone = enqueue(*context, 1).isOk(); // Its tensors are copied.
    allocationsLeft = -1;
    fake_cuda::reset(); // The failure may not have happened.
    setX(0, x);
    ASSERT_TRUE(run(*context, 0).isOk());
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    ASSERT_EQ(yOf(0), result) << "with " << allocations << " allocations";
  }
}

TEST_F(InPlaceCalls, ACaptureGetsAChildGraphWithoutCopiesOrWaits) {
  Context context = this->context(ExecutorKind::Graph);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_TRUE(run(context, 0).isOk());
  EXPECT_EQ(countOf(names_, "Memcpy"), 0u);
  EXPECT_EQ(countOf(names_, "cudaStreamWaitEvent"), 0u);
  EXPECT_EQ(countOf(names_, "cudaEventRecord"), 0u);
  EXPECT_EQ(countOf(names_, "Malloc"), 0u);
  EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphNode_t node = nullptr;
  cudaGraphNodeType type = {};
  size_t count = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &count), cudaSuccess);
  ASSERT_EQ(count, 1u);
  ASSERT_EQ(cudaGraphGetNodes(graph, &node, &count), cudaSuccess);
  ASSERT_EQ(cudaGraphNodeGetType(node, &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeGraph);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(InPlaceCalls, AFailureInACaptureDoesNotMakeItInvalid) {
  Context context = this->context(ExecutorKind::Graph);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  fake_cuda::failCall("cudaGraphAddChildGraphNode", 1, cudaErrorMemoryAllocation);
  const Status failed = run(context, 0);
  EXPECT_EQ(failed.code(), Code::OutOfMemory);
  EXPECT_EQ(countOf(names_, "Synchronize"), 0u);
  EXPECT_TRUE(run(context, 0).isOk());
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

} // namespace
} // namespace cgc::test
