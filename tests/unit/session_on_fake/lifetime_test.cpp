// The life of a session on the fake GPU, from its creation to its destruction, while CUDA calls and
// host allocations fail.
#include "runtime/base/no_throw.h"
#include "tests/fake_cuda/failing_operator_new.h"
#include "tests/unit/runtime/session/served_plan.h"

#include <functional>

namespace cgc::test {
namespace {

using testing::HasSubstr;

/// Creates a session in a memory pool, runs, swaps weights, updates and destroys, and returns the
/// first error.
class Lifetime : public ServedPlanTest {
protected:
  Lifetime() { fake_cuda::reset({.devices = 2}); }
  ~Lifetime() override { fake_cuda::reset(); }

  Status live() {
    CGC_ASSIGN_OR_RETURN(const auto pool, MemoryPool::create({.target = DeviceKind::Cuda}));
    SessionOptions options{.contexts = 2};
    options.engine.provider = &provider_;
    options.engine.pool = pool;
    CGC_ASSIGN_OR_RETURN(Session session, Session::create(small_, options));
    for (const int64_t n : {1, 6, 3}) // Exact, split, padded.
      CGC_TRY(runRight(session, "rows", {n, 4}));
    CGC_TRY(session.swapWeights(other_));
    CGC_TRY(session.update(small_));
    CGC_TRY(runRight(session, "columns", {3, 4, 4}));
    CGC_ASSIGN_OR_RETURN(Reservation reservation, session.reserve("rows", 3));
    return reservation.run();
  }
  /// The same without a pool on two GPUs: weights are copied from one to the other, buckets are
  /// captured when they are first used, and each GPU has a reservation.
  Status liveOnTwoGpus() {
    SessionOptions options{.devices = {0, 1}};
    options.engine.provider = &provider_;
    options.context.capture = CaptureTime::OnFirstUse;
    CGC_ASSIGN_OR_RETURN(Session session, Session::create(small_, options));
    for (const int device : {0, 1}) {
      CGC_ASSIGN_OR_RETURN(Reservation reservation, session.reserve("rows", 3, device));
      EXPECT_EQ(reservation.device(), device);
      CGC_TRY(runRight(reservation));
    }
    CGC_TRY(runRight(session, "rows", {6, 4}));
    CGC_TRY(session.swapWeights(other_));
    CGC_TRY(session.update(small_));
    CGC_TRY(session.prepare("columns", 2));
    return runRight(session, "columns", {3, 2, 4});
  }
  /// A run of three rows on the reservation's buffers, which are host memory on the fake GPU.
  static Status runRight(Reservation &reservation) {
    CGC_ASSIGN_OR_RETURN(const TensorView in, reservation.inputBuffer(0));
    CGC_ASSIGN_OR_RETURN(const TensorView out, reservation.outputBuffer(0));
    for (int i = 0; i < 12; ++i)
      static_cast<float *>(in.data)[i] = float(i);
    CGC_TRY(reservation.run());
    const auto *const y = static_cast<const float *>(out.data);
    EXPECT_EQ(std::vector<float>(y, y + 12), expected({3, 4}));
    return Status::ok();
  }
  /// A run whose values must be right if it succeeds.
  static Status runRight(Session &session, std::string_view entry, std::vector<int64_t> sizes) {
    CGC_ASSIGN_OR_RETURN(const std::vector<float> y, run(session, entry, sizes));
    EXPECT_EQ(y, expected(sizes));
    return Status::ok();
  }
  /// Calls whose failure changes nothing that a caller would see: those that free or destroy, and
  /// those that save and restore the thread's device. The rest has to be reported.
  static bool mayFailSilently(std::string_view function) {
    const auto has = [&](std::string_view part) {
      return function.find(part) != std::string_view::npos;
    };
    return has("Free") || has("Destroy") || has("Release") || function == "cuMemUnmap" ||
           function == "cudaGetDevice" || function == "cudaSetDevice" ||
           // Destructors and reservations wait for the work before; its next user gets the error.
           function == "cudaStreamSynchronize" || function == "cudaEventSynchronize";
  }
  /// Few buckets, because each call of a life fails in a life of its own.
  static std::shared_ptr<const Plan> smallPlan(const std::vector<float> &w) {
    SamplePlan sample = servedPlan(w);
    std::vector<Entry> &entries = sample.plan.entries;
    entries = {entries[0], entries[2]};
    entries[0].buckets.resize(2);
    entries[1].buckets.resize(1);
    return toPlan(sample);
  }
  void failEachCall(const std::function<Status()> &life);
  void failEachHostAllocation(const std::function<Status()> &life);

  const std::shared_ptr<const Plan> small_ = smallPlan({1, 2, 3, 4}),
                                    other_ = smallPlan({5, 6, 7, 8});
};

void Lifetime::failEachCall(const std::function<Status()> &life) {
  const uint64_t bytes = fake_cuda::allocatedBytes();
  const size_t handles = fake_cuda::liveHandles();
  int failures = 0;
  for (int nth = 1;; ++nth) {
    fake_cuda::reset({.devices = 2});
    fake_cuda::failAnyCall(nth, cudaErrorInvalidValue);
    const Status status = life();
    const bool allWereCalled = fake_cuda::callCounts().all < size_t(nth);
    failures += !status.isOk();
    const std::string_view failed = allWereCalled ? "" : fake_cuda::calls()[nth - 1].function;
    if (!status.isOk()) {
      // Work of the provider's ops is enqueued by no CUDA function. If the device of the thread
      // cannot be set, a later call may fail, which is named.
      const bool ofThread = failed == "cudaGetDevice" || failed == "cudaSetDevice";
      const std::string text = failed == "enqueue" ? ": aten::"
                               : ofThread          ? " returned "
                                                   : std::string(failed) + " returned ";
      EXPECT_THAT(status.message(), HasSubstr(text)) << nth;
      EXPECT_THAT(status.message(), HasSubstr("cudaErrorInvalidValue")) << nth;
    } else if (!allWereCalled) {
      EXPECT_TRUE(mayFailSilently(failed)) << nth << ": " << failed;
    }
    EXPECT_EQ(fake_cuda::allocatedBytes(), bytes) << nth << ": " << status.message();
    EXPECT_EQ(fake_cuda::liveHandles(), handles) << nth << ": " << status.message();
    EXPECT_EQ(provider_.captures, 0) << nth;
    EXPECT_EQ(provider_.pools, 0) << nth;
    if (allWereCalled)
      break;
    ASSERT_LT(nth, 20'000);
  }
  EXPECT_GT(failures, 100);
  fake_cuda::reset({.devices = 2});
  EXPECT_TRUE(life().isOk());
}

TEST_F(Lifetime, EveryFailedCallIsNamedAndLeaksNothing) {
  failEachCall([this] { return live(); });
}

TEST_F(Lifetime, EveryFailedCallOnTwoGpusIsNamedAndLeaksNothing) {
  failEachCall([this] { return liveOnTwoGpus(); });
}

TEST_F(Lifetime, AThousandFailedCapturesLeakNothing) {
  const uint64_t bytes = fake_cuda::allocatedBytes();
  const size_t handles = fake_cuda::liveHandles();
  for (int i = 0; i < 1000; ++i) {
    fake_cuda::failCall("cudaStreamEndCapture", 1, cudaErrorStreamCaptureInvalidated);
    EXPECT_THAT(live().message(), HasSubstr("cudaErrorStreamCaptureInvalidated"));
  }
  EXPECT_EQ(fake_cuda::allocatedBytes(), bytes);
  EXPECT_EQ(fake_cuda::liveHandles(), handles);
}

TEST_F(Lifetime, AfterAStickyFaultEachCallReturnsIt) {
  {
    std::vector<std::string> errors;
    SessionOptions options;
    options.log = [&](LogLevel level, std::string_view text) {
      if (level == LogLevel::Error)
        errors.emplace_back(text);
    };
    int fallbacks = 0;
    provider_.methods["rows"] = [&](auto, auto, void *) {
      ++fallbacks;
      return Status::ok();
    };
    options.fallbackModel = "model.pt";
    Session session = createSession(small_, options);
    fake_cuda::failCall("cudaGraphLaunch", 1, cudaErrorIllegalAddress, /*sticky=*/true);
    for (int i = 0; i < 3; ++i) {
      const Status failed = run(session, "rows", {1, 4}).status();
      EXPECT_EQ(failed.code(), Code::Device);
      EXPECT_THAT(failed.message(), HasSubstr("cudaErrorIllegalAddress"));
      EXPECT_FALSE(session.healthy());
    }
    EXPECT_THAT(run(session, "rows", {2, 2, 4}).status().message(), // No bucket takes it.
                HasSubstr("cudaErrorIllegalAddress"));
    EXPECT_EQ(fallbacks, 0);
    EXPECT_EQ(session.stats().failuresByCode[size_t(Code::Device)], 4u);
    EXPECT_THAT(errors, testing::ElementsAre(HasSubstr("the session has lost a device")));
    EXPECT_THAT(session.reset().message(), HasSubstr("cudaErrorIllegalAddress"));
    EXPECT_FALSE(session.healthy());
    fake_cuda::reset({.devices = 2}); // Now the driver allows it.
    EXPECT_TRUE(session.reset().isOk());
    EXPECT_TRUE(session.healthy());
    EXPECT_EQ(*run(session, "rows", {5, 4}), expected({5, 4}));
    EXPECT_TRUE(run(session, "rows", {2, 2, 4}).isOk());
    fake_cuda::failCall("cudaGraphLaunch", 1, cudaErrorIllegalAddress, /*sticky=*/true);
    EXPECT_FALSE(run(session, "rows", {1, 4}).isOk());
    EXPECT_EQ(errors.size(), 2u); // Once for each loss.
    fake_cuda::reset({.devices = 2});
  }
  fake_cuda::reset({.devices = 2});
  EXPECT_TRUE(live().isOk());
}

void Lifetime::failEachHostAllocation(const std::function<Status()> &life) {
  const uint64_t bytes = fake_cuda::allocatedBytes();
  const size_t handles = fake_cuda::liveHandles();
  long nth = 0;
  for (;; ++nth) {
    fake_cuda::reset({.devices = 2});
    allocationsLeft = nth;
    const Status status = noThrow(life);
    const bool allSucceeded = allocationsLeft >= 0;
    allocationsLeft = -1;
    EXPECT_EQ(fake_cuda::allocatedBytes(), bytes) << nth << ": " << status.message();
    EXPECT_EQ(fake_cuda::liveHandles(), handles) << nth << ": " << status.message();
    EXPECT_EQ(provider_.captures, 0) << nth;
    EXPECT_EQ(provider_.pools, 0) << nth;
    if (allSucceeded) {
      EXPECT_TRUE(status.isOk()) << status.message();
      break;
    }
    EXPECT_EQ(status.code(), Code::OutOfMemory) << nth << ": " << status.message();
    ASSERT_LT(nth, 20'000);
  }
  EXPECT_GT(nth, 500);
}

TEST_F(Lifetime, EveryFailedHostAllocationIsReportedAndLeaksNothing) {
  failEachHostAllocation([this] { return live(); });
}

TEST_F(Lifetime, EveryFailedHostAllocationOnTwoGpusIsReportedAndLeaksNothing) {
  failEachHostAllocation([this] { return liveOnTwoGpus(); });
}

} // namespace
} // namespace cgc::test
