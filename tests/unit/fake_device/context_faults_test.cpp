// Failures of Engine and Context on the fake GPU: during a capture, without memory, and of every
// CUDA call. The error says what failed, and nothing is left behind.
#include "tests/unit/fake_device/context_fixture.h"

#include <map>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(FakeDevice, ARecordThatFailsDuringTheCaptureFailsTheContext) {
  // The fourth run of the first record is the captured one. CUDA then ends the capture without an
  // error, with a graph that lacks the record.
  int runs = 0;
  provider_.ops["aten::neg"] = [&](const FakeCall &f, void *stream) {
    return ++runs == 4 ? Status(Code::Failed, "boom") : negate(f, stream);
  };
  const Engine engine = *createEngine();
  const size_t handles = fake_cuda::liveHandles();
  const uint64_t bytes = fake_cuda::allocatedBytes();
  const Status status = Context::create(engine).status();
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("entry 'main', bucket 0"), HasSubstr("capture"),
                    HasSubstr("aten::neg.out (model.py:12, visual.ln)"), HasSubstr("boom")));
  EXPECT_EQ(fake_cuda::liveHandles(), handles);
  EXPECT_EQ(fake_cuda::allocatedBytes(), bytes);
  EXPECT_EQ(provider_.pools, 0);
  EXPECT_EQ(provider_.captures, 0);
  EXPECT_TRUE(Context::create(engine).isOk());
}

TEST_F(FakeDevice, AnOpThatCannotBeCapturedFailsTheContext) {
  // LibTorch does this for an op that copies its result to the host.
  provider_.ops["aten::neg"] = [](const FakeCall &f, void *stream) {
    CGC_TRY(negate(f, stream));
    (void)cudaStreamSynchronize(cudaStream_t(stream));
    return Status::ok();
  };
  const Engine engine = *createEngine();
  const Status status = Context::create(engine).status();
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(), HasSubstr("cudaErrorStreamCaptureInvalidated"));
}

TEST_F(FakeDevice, NothingIsLeftBehind) {
  {
    const Engine engine = *createEngine();
    Context stream = *Context::create(engine, {.executor = ExecutorKind::Stream});
    Context graph = *Context::create(engine);
    EXPECT_TRUE(runMain(stream, {1, 2, 3, 4}).isOk());
    EXPECT_TRUE(runMain(graph, {1, 2, 3, 4}).isOk());
    EXPECT_TRUE(graph.profile("main", 0, 1).isOk());
    EXPECT_GT(fake_cuda::allocatedBytes(), 0u);
  }
  EXPECT_EQ(fake_cuda::allocatedBytes(), 0u);
  EXPECT_EQ(fake_cuda::liveHandles(), 0u);
  EXPECT_EQ(provider_.pools, 0);
}

TEST_F(FakeDevice, ADeviceWithoutMemoryGivesTheMemoryBreakdown) {
  fake_cuda::reset({.deviceBytes = 800});
  const Engine engine = *createEngine();
  const uint64_t before = fake_cuda::allocatedBytes();
  fake_cuda::clearCalls();
  const Status status = Context::create(engine).status();
  EXPECT_EQ(status.code(), Code::OutOfMemory);
  // Refused before any memory is allocated.
  EXPECT_EQ(std::ranges::count(fake_cuda::calls(), "cudaMalloc", &fake_cuda::Call::function), 0);
  EXPECT_EQ(fake_cuda::allocatedBytes(), before);
  // The weights take 256 + 3 bytes. The arena is that of the larger bucket; inputs and outputs are
  // those of all buckets.
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("259 bytes for weights"), HasSubstr("512 bytes for the arena"),
                    HasSubstr("100 bytes for inputs and outputs"),
                    HasSubstr("541 bytes of 800 bytes free")));
}

/// Each CUDA runtime call of creation and run fails once.
TEST_F(FakeDevice, EveryCallThatFailsIsReportedAndLeavesNothingBehind) {
  // Calls during destruction are not counted: their failures are ignored.
  size_t callsUntilDestroyed = 0;
  const auto createAndRun = [&]() -> Status {
    CGC_ASSIGN_OR_RETURN(const Engine engine, createEngine());
    CGC_ASSIGN_OR_RETURN(Context context, Context::create(engine));
    CGC_ASSIGN_OR_RETURN(const std::vector<float> y, runMain(context, {10, 10, 10, 10}));
    if (y != std::vector<float>{-9, -8, -7, -6})
      return {Code::Failed, "wrong results"};
    const Status profiled = context.profile("main", 0, 1).status();
    callsUntilDestroyed = fake_cuda::calls().size();
    return profiled;
  };
  ASSERT_TRUE(createAndRun().isOk());
  std::map<std::string, int> counts;
  std::vector<fake_cuda::Call> calls = fake_cuda::calls();
  calls.resize(callsUntilDestroyed);
  for (const fake_cuda::Call &call : calls)
    ++counts[std::string(call.function)];
  // Failures of these calls have no effect: the freed objects are not used again, and the current
  // device stays the same.
  for (const char *ignored : {"cudaFreeHost", "cudaEventDestroy", "cudaStreamDestroy",
                              "cudaGraphDestroy", "cudaGraphExecDestroy", "cudaGetDevice"})
    counts.erase(ignored);
  ASSERT_GE(counts.size(), 20u);
  for (const auto &[function, count] : counts)
    for (int nth = 1; nth <= count; ++nth)
      for (const bool sticky : {false, true}) {
        SCOPED_TRACE(function + ", call " + std::to_string(nth) + (sticky ? ", sticky" : ""));
        fake_cuda::reset();
        fake_cuda::failCall(function, nth, cudaErrorIllegalAddress, sticky);
        const Status status = createAndRun();
        EXPECT_EQ(status.code(), Code::Device) << status.message();
        EXPECT_THAT(status.message(), HasSubstr("cudaErrorIllegalAddress"));
        EXPECT_EQ(fake_cuda::allocatedBytes(), 0u);
        EXPECT_EQ(fake_cuda::liveHandles(), 0u);
        EXPECT_EQ(provider_.pools, 0);
        EXPECT_EQ(provider_.captures, 0);
        fake_cuda::reset();
        const Status next = createAndRun();
        EXPECT_TRUE(next.isOk()) << next.message();
      }
}

} // namespace
} // namespace cgc::test
