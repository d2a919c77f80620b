// Stream captures of the fake GPU follow CUDA's rules: "Creating a Graph Using Stream Capture" in
// the CUDA C++ Programming Guide, and cudaThreadExchangeStreamCaptureMode in the Runtime API.
#include "runtime/exec/caller_capture.h"
#include "tests/unit/fake_device/capture_fixture.h"

#include <thread>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(FakeCapture, WorkBecomesNodesThatRunAtReplays) {
  const cudaStream_t s = stream();
  begin(s);
  log(s, 1);
  log(s, 2);
  ASSERT_EQ(end(s), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(ran, IsEmpty());
  replay();
  replay();
  EXPECT_THAT(ran, ElementsAre(1, 2, 1, 2));
}

/// "Capture may not be initiated if stream is cudaStreamLegacy", and "only if the stream is not
/// already in capture mode".
TEST_F(FakeCapture, BeginsOnStreamsThatDoNotCapture) {
  const cudaStream_t s = stream();
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed),
            cudaErrorStreamCaptureUnsupported);
  cudaGraph_t none = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(s, &none), cudaErrorIllegalState);
  begin(s);
  EXPECT_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed), cudaErrorIllegalState);
  EXPECT_EQ(end(s), cudaSuccess);
}

/// "It is invalid to synchronize or query the execution status of a stream which is being captured
/// or a captured event"; "further use of any streams [...] will return an error, until stream
/// capture is ended", which returns "an error value and a NULL graph". CUDA 13.0 on an H100 refuses
/// cudaStreamGetDevice, cudaStreamGetFlags and cudaStreamGetId likewise, in every mode.
TEST_F(FakeCapture, AForbiddenCallInvalidatesUntilTheEnd) {
  const cudaStream_t s = stream();
  for (const auto &[forbidden, error] :
       std::vector<std::pair<std::function<cudaError_t()>, cudaError_t>>{
           {[&] { return cudaStreamSynchronize(s); }, cudaErrorStreamCaptureUnsupported},
           {[&] { return cudaStreamQuery(s); }, cudaErrorStreamCaptureUnsupported},
           {[&] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported},
           {[&] {
              int device = -1;
              return cudaStreamGetDevice(s, &device);
            },
            cudaErrorStreamCaptureUnsupported},
           {[&] {
              unsigned flags = 0;
              return cudaStreamGetFlags(s, &flags);
            },
            cudaErrorStreamCaptureUnsupported},
           {[&] {
              const cudaEvent_t e = event();
              record(e, s);
              return cudaEventSynchronize(e);
            },
            cudaErrorCapturedEvent}}) {
    begin(s, cudaStreamCaptureModeRelaxed);
    log(s, 1);
    EXPECT_EQ(forbidden(), error);
    EXPECT_EQ(status(s), cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(fake_cuda::enqueue(s, [] {}), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(end(s), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(status(s), cudaStreamCaptureStatusNone);
  }
}

/// cudaThreadExchangeStreamCaptureMode says which captures prohibit "potentially unsafe API calls",
/// such as cudaMalloc, to which threads.
TEST_F(FakeCapture, ModesSayWhoMayCallWhatIsUnsafe) {
  struct Case {
    cudaStreamCaptureMode capture, thread;
    bool isOtherThread, isAllowed;
  };
  constexpr auto kGlobal = cudaStreamCaptureModeGlobal, kLocal = cudaStreamCaptureModeThreadLocal,
                 kRelaxed = cudaStreamCaptureModeRelaxed;
  const cudaStream_t s = stream();
  for (const Case &c : {Case{kGlobal, kGlobal, false, false},
                        {kLocal, kGlobal, false, false},
                        {kRelaxed, kGlobal, false, true},
                        {kGlobal, kLocal, false, false},
                        {kLocal, kLocal, false, false},
                        {kGlobal, kRelaxed, false, true},
                        {kGlobal, kGlobal, true, false},
                        {kGlobal, kLocal, true, true},
                        {kLocal, kGlobal, true, true},
                        {kRelaxed, kGlobal, true, true}}) {
    SCOPED_TRACE(testing::Message() << c.capture << " " << c.thread << " " << c.isOtherThread);
    begin(s, c.capture);
    const auto allocate = [&] {
      cudaStreamCaptureMode mode = c.thread;
      EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
      void *memory = nullptr;
      EXPECT_EQ(cudaMalloc(&memory, 4),
                c.isAllowed ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
      EXPECT_EQ(cudaFree(memory), cudaSuccess);
      EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
      EXPECT_EQ(mode, c.thread);
    };
    c.isOtherThread ? std::thread(allocate).join() : allocate();
    EXPECT_EQ(end(s), c.isAllowed ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
  }
}

TEST_F(FakeCapture, ARelaxedScopeEndsWithTheModeThatItFound) {
  const auto exchange = [](cudaStreamCaptureMode mode) {
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    return mode;
  };
  const cudaStreamCaptureMode found = exchange(cudaStreamCaptureModeThreadLocal);
  {
    const RelaxedCaptureMode relaxed;
    EXPECT_EQ(exchange(cudaStreamCaptureModeRelaxed), cudaStreamCaptureModeRelaxed);
  }
  EXPECT_EQ(exchange(found), cudaStreamCaptureModeThreadLocal);
}

/// CUDA 13.0 on an H200 counts cudaGraphInstantiate as unsafe; its documentation is silent.
TEST_F(FakeCapture, RefusesToInstantiateUnlessRelaxed) {
  const cudaStream_t s = stream();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  keep(graph);
  begin(s, cudaStreamCaptureModeGlobal);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  instantiate(graph);
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(end(s), cudaSuccess);
  begin(s, cudaStreamCaptureModeGlobal);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(s), cudaErrorStreamCaptureInvalidated);
}

/// "If mode is not cudaStreamCaptureModeRelaxed, cudaStreamEndCapture must be called on this stream
/// from the same thread."
TEST_F(FakeCapture, OnlyARelaxedCaptureEndsInAnotherThread) {
  const cudaStream_t s = stream();
  begin(s);
  std::thread([&] { EXPECT_EQ(end(s), cudaErrorStreamCaptureWrongThread); }).join();
  EXPECT_EQ(end(s), cudaSuccess);
  begin(s, cudaStreamCaptureModeRelaxed);
  std::thread([&] { EXPECT_EQ(end(s), cudaSuccess); }).join();
}

/// "When any stream in the same context is being captured, and it was not created with
/// cudaStreamNonBlocking, any attempted use of the legacy stream is invalid."
TEST_F(FakeCapture, TheLegacyStreamMayNotBeUsedBesideABlockingStream) {
  const cudaStream_t blocking = stream(cudaStreamDefault), other = stream();
  begin(other);
  EXPECT_EQ(fake_cuda::enqueue(nullptr, [] {}), cudaSuccess);
  EXPECT_EQ(end(other), cudaSuccess);
  begin(blocking);
  EXPECT_EQ(fake_cuda::enqueue(nullptr, [] {}), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(end(blocking), cudaErrorStreamCaptureInvalidated);
  begin(blocking, cudaStreamCaptureModeRelaxed);
  cudaStreamCaptureStatus status = {};
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(end(blocking), cudaErrorStreamCaptureInvalidated);
}

/// cudaErrorCapturedEvent: "The operation is not permitted on an event which was last recorded in a
/// capturing stream", also after the capture.
TEST_F(FakeCapture, ACapturedEventIsUselessUntilItIsRecordedAgain) {
  const cudaStream_t s = stream();
  const cudaEvent_t e = event();
  begin(s);
  record(e, s);
  ASSERT_EQ(end(s), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(e), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamWaitEvent(s, e, 0), cudaErrorCapturedEvent);
  record(e, s);
  EXPECT_EQ(cudaEventSynchronize(e), cudaSuccess);
}

/// cudaStreamGetCaptureInfo and cudaStreamUpdateCaptureDependencies: a node that is added to the
/// captured graph takes its place in the stream.
TEST_F(FakeCapture, NodesCanBeAddedToTheCapturedGraph) {
  const cudaStream_t s = stream();
  begin(s);
  log(s, 1);
  cudaStreamCaptureStatus status = {};
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t *last = nullptr;
  size_t count = 0;
  unsigned long long id = 0;
  ASSERT_EQ(cudaStreamGetCaptureInfo(s, &status, &id, &graph, &last, nullptr, &count), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_NE(id, 0u);
  ASSERT_EQ(count, 1u);
  const cudaHostNodeParams append{
      [](void *ran) { static_cast<std::vector<int> *>(ran)->push_back(2); }, &ran};
  cudaGraphNode_t added = nullptr;
  ASSERT_EQ(cudaGraphAddHostNode(&added, graph, last, count, &append), cudaSuccess);
  ASSERT_EQ(
      cudaStreamUpdateCaptureDependencies(s, &added, nullptr, 1, cudaStreamSetCaptureDependencies),
      cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaErrorInvalidValue); // It is not the user's.
  log(s, 3);
  ASSERT_EQ(end(s), cudaSuccess);
  EXPECT_EQ(captured_, graph);
  EXPECT_EQ(cudaStreamUpdateCaptureDependencies(s, &added, nullptr, 1, 0), cudaErrorIllegalState);
  replay();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

/// A graph that is launched in a captured stream becomes a child graph.
TEST_F(FakeCapture, ALaunchOfAGraphIsCapturedAsItsChild) {
  const cudaStream_t s = stream();
  begin(s);
  log(s, 2);
  ASSERT_EQ(end(s), cudaSuccess);
  const cudaGraphExec_t inner = instantiate(captured_);
  begin(s);
  log(s, 1);
  ASSERT_EQ(cudaGraphLaunch(inner, s), cudaSuccess);
  log(s, 3);
  ASSERT_EQ(end(s), cudaSuccess);
  std::vector<cudaGraphNode_t> nodes(3);
  size_t count = 3;
  ASSERT_EQ(cudaGraphGetNodes(captured_, nodes.data(), &count), cudaSuccess);
  cudaGraphNodeType type = {};
  EXPECT_EQ(cudaGraphNodeGetType(nodes[1], &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeGraph);
  replay();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

} // namespace
} // namespace cgc::test
