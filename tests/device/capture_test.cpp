// Failures of records and launches, during capture and on the device: the error names them, no
// resources leak, and the next try succeeds.
#include "tests/conformance/cuda_fixture.h"

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Failures that every executor reports.
class Failures : public ExecutorTest {};
CGC_ON_ALL_EXECUTORS(Failures);

TEST_P(Failures, AFailingRecordIsNamedAndTheNextRunWorks) {
  load(chainPlan());
  bool fail = true;
  provider_.ops["aten::clone"] = [&](const FakeCall &f, void *stream) {
    return fail ? Status(Code::Failed, "once") : cloneOp(f, stream);
  };
  Context context = this->context(plainExecutor());
  EXPECT_THAT(run(context, randomFloats(kColumns, 1)).status().message(),
              AllOf(HasSubstr("entry 'main'"), HasSubstr("model.py:41"), HasSubstr("once")));
  fail = false;
  EXPECT_TRUE(run(context, randomFloats(kColumns, 1)).isOk());
}

TEST_P(Failures, KernelsThatThisRuntimeLacksAreRefusedByName) {
  const auto message = [&](auto change) {
    SamplePlan sample = chainPlan();
    change(sample.plan.entries[0].buckets[0].records[0]);
    load(sample);
    return Context::create(*engine_, {}).status().message();
  };
  const auto kernel = [](LaunchRecord &r) -> KernelLaunch & {
    return std::get<KernelLaunch>(r.op);
  };
  EXPECT_THAT(
      message([&](auto &r) { kernel(r).kernel = "gemm_x"; }),
      AllOf(HasSubstr("kernel gemm_x (model.py:40, visual.ln_pre)"), HasSubstr("does not have")));
  EXPECT_THAT(message([&](auto &r) { kernel(r).abiHash = 1; }), HasSubstr("with abi 1, and"));
  EXPECT_THAT(message([&](auto &r) { kernel(r).ints.push_back(1); }),
              HasSubstr("number of arguments"));
  // Arguments with which the kernel would access memory outside its tensors.
  EXPECT_THAT(message([&](auto &r) { kernel(r).ints[1] += 1; }), HasSubstr("rows * columns"));
  EXPECT_THAT(message([&](auto &r) { kernel(r).ints = {int64_t(1) << 62, 8}; }),
              HasSubstr("rows and columns"));
  EXPECT_THAT(message([&](auto &r) { kernel(r).grid[0] += 1; }), HasSubstr("grid"));
  EXPECT_THAT(message([&](auto &r) { kernel(r).reads[0] = kNoTensor; }),
              HasSubstr("x has to be dense"));
  EXPECT_THAT(message([&](auto &r) {
                LibraryCall call;
                call.library = "cublaslt";
                call.function = "transform";
                call.reads = {id(0)};
                call.writes = {id(1)};
                r.op = call;
              }),
              AllOf(HasSubstr("cublaslt.transform"), HasSubstr("knows no such library call")));
}

class Capture : public CudaTest {
protected:
  Status tryCreate(ExecutorKind executor = ExecutorKind::Graph) {
    return Context::create(*engine_, {.executor = executor}).status();
  }
  /// Checks after a failure: no memory is held, no CUDA error is pending, and a new context gives
  /// right results.
  void expectRecovery() {
    EXPECT_EQ(provider_.pools, 0);
    EXPECT_EQ(provider_.captures, 0);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    provider_.ops["aten::clone"] = cloneOp;
    Context graph = context(ExecutorKind::Graph), stream = context(ExecutorKind::Stream);
    const std::vector<float> x = randomFloats(3 * kColumns, 3);
    const Result<Outputs> a = run(graph, x), b = run(stream, x);
    ASSERT_TRUE(a.isOk() && b.isOk()) << a.status().message() << b.status().message();
    EXPECT_EQ(*a, *b);
  }
};

TEST_F(Capture, AFailingRecordDiscardsTheGraph) {
  load(chainPlan());
  // CUDA reports no error here and returns a graph that lacks a record.
  provider_.ops["aten::clone"] = [](const FakeCall &f, void *stream) {
    return isCapturing(stream) ? Status(Code::Failed, "not now") : cloneOp(f, stream);
  };
  const Status status = tryCreate();
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("entry 'main', bucket 0: capture: aten::clone (model.py:41"),
                    HasSubstr("visual.proj"), HasSubstr("not now")));
  expectRecovery();
}

TEST_F(Capture, ACallThatBreaksTheCaptureIsNamed) {
  load(chainPlan());
  provider_.ops["aten::clone"] = [](const FakeCall &f, void *stream) -> Status {
    CGC_TRY(cloneOp(f, stream));
    if (cudaStreamSynchronize(cudaStream_t(stream)) != cudaSuccess)
      return {Code::Device, "synchronised a stream that is being captured"};
    return Status::ok();
  };
  EXPECT_THAT(tryCreate().message(), HasSubstr("synchronised a stream that is being captured"));
  expectRecovery();
}

TEST_F(Capture, ABrokenCaptureFailsEvenIfTheRecordSaysNothing) {
  load(chainPlan());
  provider_.ops["aten::clone"] = [](const FakeCall &f, void *stream) {
    (void)cudaStreamSynchronize(cudaStream_t(stream));
    (void)cudaGetLastError();
    return isCapturing(stream) ? Status::ok() : cloneOp(f, stream);
  };
  EXPECT_EQ(tryCreate().code(), Code::Device);
  expectRecovery();
}

TEST_F(Capture, AFailingWarmUpIsNamed) {
  load(chainPlan());
  provider_.ops["aten::clone"] = [](const FakeCall &, void *) {
    return Status(Code::Failed, "cold");
  };
  EXPECT_THAT(tryCreate().message(), AllOf(HasSubstr("warm-up"), HasSubstr("cold")));
  expectRecovery();
}

TEST_F(Capture, AnEmptyGraphIsAnError) {
  SamplePlan sample = chainPlan();
  Bucket &bucket = sample.plan.entries[0].buckets[0];
  AtenCall nothing;
  nothing.op = "aten::nothing";
  nothing.outputs = {id(3), id(4)};
  bucket.records = {{nothing}};
  provider_.ops["aten::nothing"] = [](const FakeCall &, void *) { return Status::ok(); };
  load(sample);
  EXPECT_THAT(tryCreate().message(), HasSubstr("the captured graph is empty"));
  EXPECT_EQ(provider_.pools, 0);
}

TEST_F(Capture, RunsEachRecordThreeTimesAndOnceForTheGraph) {
  load(chainPlan());
  ASSERT_TRUE(tryCreate().isOk());
  EXPECT_EQ(provider_.runs, 3 * 4);
}

TEST_F(Capture, AnArenaThatDoesNotFitComesWithTheMemoryBreakdown) {
  SamplePlan sample = chainPlan();
  sample.plan.entries[0].buckets[0].arenaBytes = uint64_t(1) << 46;
  load(sample);
  ASSERT_FALSE(tryCreate().isOk()); // The driver has made its one-time allocations by now.
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  const Status status = tryCreate();
  EXPECT_EQ(status.code(), Code::OutOfMemory);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("for weights"), HasSubstr("70.4 TB for the arena"),
                                      HasSubstr("for inputs and outputs"), HasSubstr("the GPU has"),
                                      HasSubstr("free")));
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(before, after) << "memory leaked";
  load(chainPlan());
  expectRecovery();
}

/// A kernel that traps. The CUDA context of the process is unusable afterwards.
Status trap(void *stream) {
  static constexpr char kPtx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                                 ".visible .entry boom() { trap; }\n";
  cudaLibrary_t library;
  cudaKernel_t kernel;
  if (cudaLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0) !=
          cudaSuccess ||
      cudaLibraryGetKernel(&kernel, library, "boom") != cudaSuccess ||
      cudaLaunchKernel(reinterpret_cast<const void *>(kernel), 1, 1, nullptr, 0,
                       cudaStream_t(stream)) != cudaSuccess)
    return {Code::Failed, "cannot launch the trap"};
  return Status::ok();
}

class DeviceFault : public Capture {};

/// Runs in a child process, because the fault makes its CUDA context unusable.
TEST_F(DeviceFault, LatchesWithoutTouchingCudaAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto child = [&] {
    load(chainPlan());
    bool fault = false;
    provider_.ops["aten::clone"] = [&](const FakeCall &f, void *stream) {
      return fault ? trap(stream) : cloneOp(f, stream);
    };
    int runs = 0;
    {
      Context first = context(ExecutorKind::Stream), second = context(ExecutorKind::Graph);
      fault = true;
      const Status lost = run(first, randomFloats(kColumns, 1)).status();
      runs = provider_.runs;
      fault = false;
      const Status again = run(first, randomFloats(kColumns, 1)).status();
      const Status other = run(second, randomFloats(kColumns, 1)).status();
      const Status fresh = tryCreate();
      for (const Status &status : {lost, again, other, fresh})
        if (status.code() != Code::Device ||
            status.message().find("start a new one") == std::string::npos) {
          std::fprintf(stderr, "got: %s\n", status.message().c_str());
          ::_exit(1);
        }
      if (provider_.runs != runs)
        ::_exit(2);
    }
    // Destructors neither hang nor abort with an unusable context.
    engine_.reset();
    std::exit(0);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace cgc::test
