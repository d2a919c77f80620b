// Streams and events of the fake GPU follow CUDA's rules of order.
#include "tests/unit/fake_device/fake_cuda_test.h"

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FakeStreams : public FakeCuda {};

/// cudaStreamSynchronize: "Blocks until the stream has completed all operations."
TEST_F(FakeStreams, WorkRunsInOrderAndOnlyWhenSomethingWaits) {
  const cudaStream_t s = stream();
  log(s, 1);
  log(s, 2);
  EXPECT_THAT(ran, IsEmpty());
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

/// cudaStreamWaitEvent: "Makes all future work submitted to stream wait for all work captured in
/// event", the state of the event at the time of the call.
TEST_F(FakeStreams, AWaitOrdersStreams) {
  const cudaStream_t a = stream(), b = stream();
  const cudaEvent_t e = event();
  log(a, 1);
  ASSERT_EQ(cudaEventRecord(e, a), cudaSuccess);
  log(a, 2);
  ASSERT_EQ(cudaStreamWaitEvent(b, e, 0), cudaSuccess);
  log(b, 3);
  ASSERT_EQ(cudaStreamSynchronize(b), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(1, 3));
  ASSERT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(1, 3, 2));
}

TEST_F(FakeStreams, WithoutAWaitAnotherStreamsWorkDoesNotRun) {
  const cudaStream_t a = stream(), b = stream();
  log(a, 1);
  log(b, 2);
  ASSERT_EQ(cudaStreamSynchronize(b), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(2));
  ASSERT_EQ(cudaStreamSynchronize(a), cudaSuccess);
}

/// "Before the first call to cudaEventRecord(), an event represents an empty set of work."
TEST_F(FakeStreams, AnEventThatWasNeverRecordedIsDone) {
  const cudaEvent_t e = event();
  EXPECT_EQ(cudaEventQuery(e), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(e), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream(), e, 0), cudaSuccess);
}

/// The legacy default stream: "synchronizes with all other streams in the same CUcontext except for
/// non-blocking streams", in both directions.
TEST_F(FakeStreams, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  const cudaStream_t blocking = stream(cudaStreamDefault), other = stream();
  for (const cudaStream_t legacy : {cudaStream_t(nullptr), cudaStreamLegacy}) {
    ran.clear();
    log(blocking, 1);
    log(other, 2);
    log(legacy, 3);
    log(blocking, 4);
    ASSERT_EQ(cudaStreamSynchronize(blocking), cudaSuccess);
    EXPECT_THAT(ran, ElementsAre(1, 3, 4));
    ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  }
}

/// A query never waits. Every second one makes progress, so that polling ends.
TEST_F(FakeStreams, PollingEnds) {
  const cudaStream_t s = stream();
  const cudaEvent_t e = event();
  log(s, 1);
  log(s, 2);
  ASSERT_EQ(cudaEventRecord(e, s), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(s), cudaErrorNotReady);
  EXPECT_THAT(ran, IsEmpty());
  int polls = 0;
  while (cudaEventQuery(e) == cudaErrorNotReady)
    ASSERT_LT(++polls, 100);
  EXPECT_EQ(cudaStreamQuery(s), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

/// cudaEventElapsedTime: cudaErrorNotReady before completion, cudaErrorInvalidResourceHandle
/// without a record or with cudaEventDisableTiming.
TEST_F(FakeStreams, ElapsedTimeNeedsCompleteRecordsWithTiming) {
  const cudaStream_t s = stream();
  const cudaEvent_t begin = event(), end = event(), untimed = event(cudaEventDisableTiming);
  float millis = 0;
  EXPECT_EQ(cudaEventElapsedTime(&millis, begin, end), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaEventRecord(begin, s), cudaSuccess);
  log(s, 1);
  ASSERT_EQ(cudaEventRecord(end, s), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(untimed, s), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&millis, begin, end), cudaErrorNotReady);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&millis, begin, end), cudaSuccess);
  EXPECT_EQ(millis, 2); // The work and the record of `end`.
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&millis, begin, untimed), cudaErrorInvalidResourceHandle);
}

/// cudaStreamDestroy: "the function will return immediately and the resources associated with
/// stream will be released automatically once the device has completed all work in stream."
TEST_F(FakeStreams, ADestroyedStreamStillRunsItsWork) {
  cudaStream_t s = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
  log(s, 1);
  ASSERT_EQ(cudaStreamDestroy(s), cudaSuccess);
  EXPECT_THAT(ran, IsEmpty());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(1));
  EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
}

/// cudaLaunchHostFunc: "Attempting to use a CUDA API may result in cudaErrorNotPermitted".
TEST_F(FakeStreams, AHostFunctionRunsInOrderAndMayNotCallCuda) {
  const cudaStream_t s = stream();
  log(s, 1);
  struct Seen {
    std::vector<int> *ran;
    cudaError_t error = cudaSuccess;
  } seen{&ran};
  ASSERT_EQ(cudaLaunchHostFunc(
                s,
                [](void *data) {
                  auto *const seen = static_cast<Seen *>(data);
                  seen->ran->push_back(2);
                  seen->error = cudaDeviceSynchronize();
                },
                &seen),
            cudaSuccess);
  log(s, 3);
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
  EXPECT_EQ(seen.error, cudaErrorNotPermitted);
}

} // namespace
} // namespace cgc::test
