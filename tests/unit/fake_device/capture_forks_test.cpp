// Captures of several streams of the fake GPU: forks, joins, and dependencies that cross a
// capture's boundary, by "Cross-stream Dependencies and Events" and "Prohibited and Unhandled
// Operations" of the CUDA C++ Programming Guide.
#include "tests/unit/fake_device/capture_fixture.h"

#include <set>

namespace cgc::test {
namespace {

using testing::ElementsAre;

/// "Cross-stream Dependencies and Events": an event forks a capture into another stream and joins
/// it again.
TEST_F(FakeCapture, EventsForkAndJoinStreams) {
  const cudaStream_t a = stream(), b = stream();
  const cudaEvent_t forked = event(), joined = event();
  begin(a);
  log(a, 1);
  record(forked, a);
  wait(b, forked);
  EXPECT_EQ(status(b), cudaStreamCaptureStatusActive);
  log(a, 2);
  log(b, 3);
  record(joined, b);
  wait(a, joined);
  log(a, 4);
  ASSERT_EQ(end(a), cudaSuccess);
  EXPECT_EQ(status(b), cudaStreamCaptureStatusNone);

  size_t nodes = 0, edges = 0;
  EXPECT_EQ(cudaGraphGetNodes(captured_, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(cudaGraphGetEdges(captured_, nullptr, nullptr, nullptr, &edges), cudaSuccess);
  EXPECT_EQ(nodes, 4u);
  EXPECT_EQ(edges, 4u); // 1-2, 1-3, 2-4, 3-4.
  // The branches run in either order.
  std::set<std::vector<int>> orders;
  for (int i = 0; i < 50; ++i) {
    ran.clear();
    replay();
    orders.insert(ran);
  }
  EXPECT_EQ(orders, (std::set<std::vector<int>>{{1, 2, 3, 4}, {1, 3, 2, 4}}));
}

/// "Any other stream that is captured [...] must be joined into the original stream."
TEST_F(FakeCapture, AForkHasToBeJoined) {
  const cudaStream_t a = stream(), b = stream();
  const cudaEvent_t e = event();
  begin(a);
  record(e, a);
  wait(b, e);
  log(b, 1);
  EXPECT_EQ(end(a), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(status(b), cudaStreamCaptureStatusNone);
  begin(a);
  log(a, 1);
  record(e, a);
  wait(b, e); // A fork without work of its own needs no join.
  EXPECT_EQ(end(a), cudaSuccess);
}

/// "Capture must be ended on the same stream in which it was initiated."
TEST_F(FakeCapture, EndsOnTheStreamThatBeganIt) {
  const cudaStream_t a = stream(), b = stream();
  const cudaEvent_t e = event();
  begin(a);
  record(e, a);
  wait(b, e);
  EXPECT_EQ(end(b), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end(a), cudaErrorStreamCaptureInvalidated);
}

/// "It is invalid to merge two separate capture graphs by waiting on a captured event".
TEST_F(FakeCapture, TwoCapturesDoNotMerge) {
  const cudaStream_t a = stream(), b = stream();
  const cudaEvent_t e = event();
  begin(a);
  begin(b);
  record(e, a);
  EXPECT_EQ(cudaStreamWaitEvent(b, e, 0), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(end(a), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end(b), cudaErrorStreamCaptureInvalidated);
}

/// "It is invalid to wait on a non-captured event from a stream which is being captured without
/// specifying the cudaEventWaitExternal flag."
TEST_F(FakeCapture, WorkOutsideIsWaitedForByAnExternalWaitOnly) {
  const cudaStream_t a = stream(), b = stream();
  const cudaEvent_t outside = event();
  log(b, 1);
  record(outside, b);
  begin(a);
  EXPECT_EQ(cudaStreamWaitEvent(a, outside, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(end(a), cudaErrorStreamCaptureInvalidated);
  begin(a);
  EXPECT_EQ(cudaStreamWaitEvent(a, outside, cudaEventWaitExternal), cudaSuccess);
  log(a, 2);
  ASSERT_EQ(end(a), cudaSuccess);
  replay();
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

} // namespace
} // namespace cgc::test
