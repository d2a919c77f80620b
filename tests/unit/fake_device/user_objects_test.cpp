// The fake GPU's user objects follow CUDA's rules.
#include "tests/unit/fake_device/capture_fixture.h"

namespace cgc::test {
namespace {

class FakeUserObjects : public FakeCapture {
protected:
  cudaUserObject_t object(unsigned references = 1) {
    cudaUserObject_t object = nullptr;
    EXPECT_EQ(
        cudaUserObjectCreate(&object, this, destroy, references, cudaUserObjectNoDestructorSync),
        cudaSuccess);
    return object;
  }
  static void destroy(void *data) {
    auto *const test = static_cast<FakeUserObjects *>(data);
    ++test->destroyed;
    test->error = cudaDeviceSynchronize();
  }
  int destroyed = 0;
  cudaError_t error = cudaSuccess;
};

/// "Creates or moves user object references that will be owned by a CUDA graph." A clone and an
/// executable graph have references of their own.
TEST_F(FakeUserObjects, LiveAsLongAsGraphsThatReferToThem) {
  const DeviceInts memory;
  const cudaStream_t on = stream();
  begin(on);
  ASSERT_EQ(cudaMemsetAsync(memory.data(), 1, memory.bytes(), on), cudaSuccess);
  cudaStreamCaptureStatus status = {};
  cudaGraph_t capturing = nullptr;
  ASSERT_EQ(cudaStreamGetCaptureInfo(on, &status, nullptr, &capturing, nullptr, nullptr, nullptr),
            cudaSuccess);
  const size_t handles = fake_cuda::liveHandles();
  ASSERT_EQ(cudaGraphRetainUserObject(capturing, object(), 1, cudaGraphUserObjectMove),
            cudaSuccess);
  EXPECT_EQ(fake_cuda::liveHandles(), handles);
  cudaGraph_t graph = nullptr, clone = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(on, &graph), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphClone(&clone, graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(clone), cudaSuccess);
  EXPECT_EQ(destroyed, 0);
  // "any references which would be released are held until the launches have finished executing"
  ASSERT_EQ(cudaGraphLaunch(exec, on), cudaSuccess);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(destroyed, 0);
  ASSERT_EQ(cudaStreamSynchronize(on), cudaSuccess);
  EXPECT_EQ(destroyed, 1);
  // "Destructor callbacks cannot make CUDA API calls"
  EXPECT_EQ(error, cudaErrorNotPermitted);
}

TEST_F(FakeUserObjects, LiveAsLongAsTheCallersReferences) {
  const cudaUserObject_t two = object(2);
  EXPECT_EQ(cudaUserObjectRelease(two, 3), cudaErrorInvalidValue);
  EXPECT_EQ(cudaUserObjectRelease(two, 1), cudaSuccess);
  EXPECT_EQ(destroyed, 0);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphRetainUserObject(graph, two, 1, 0), cudaSuccess);
  EXPECT_EQ(cudaUserObjectRelease(two, 1), cudaSuccess);
  EXPECT_EQ(destroyed, 0);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(destroyed, 1);
}

/// A capture that fails gives no graph.
TEST_F(FakeUserObjects, AreReleasedByACaptureThatFails) {
  const cudaStream_t on = stream();
  begin(on);
  cudaStreamCaptureStatus status = {};
  cudaGraph_t capturing = nullptr;
  ASSERT_EQ(cudaStreamGetCaptureInfo(on, &status, nullptr, &capturing, nullptr, nullptr, nullptr),
            cudaSuccess);
  ASSERT_EQ(cudaGraphRetainUserObject(capturing, object(), 1, cudaGraphUserObjectMove),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(on), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(on), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(destroyed, 1);
}

} // namespace
} // namespace cgc::test
