// Faults of the fake GPU, its log of calls, and calls from several threads.
#include "tests/unit/fake_device/fake_cuda_test.h"

#include <future>
#include <thread>

namespace cgc::test {
namespace {

using testing::ElementsAre;

class FakeFaults : public FakeCuda {};

TEST_F(FakeFaults, TheNthCallOfANameFails) {
  fake_cuda::failCall("cudaMemset", 2, cudaErrorUnknown);
  const DeviceInts memory;
  EXPECT_EQ(cudaMemset(memory.data(), 0, 4), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory.data(), 1, 4), cudaErrorUnknown);
  EXPECT_THAT(memory.now(), ElementsAre(0)); // A call that fails does nothing.
  EXPECT_EQ(cudaGetLastError(), cudaErrorUnknown);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory.data(), 1, 4), cudaSuccess);
}

TEST_F(FakeFaults, TheNthCallOfAnyFunctionFails) {
  int device = 0;
  fake_cuda::failAnyCall(3, cudaErrorUnknown);
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorUnknown);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(FakeFaults, AStickyFaultStays) {
  const cudaStream_t s = stream();
  log(s, 1);
  fake_cuda::failCall("cudaStreamSynchronize", 1, cudaErrorLaunchFailure, /*sticky=*/true);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorLaunchFailure);
  void *memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorLaunchFailure);
  EXPECT_TRUE(ran.empty());
}

TEST_F(FakeFaults, AFunctionThatFreesDoesSoEvenIfItFails) {
  void *memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  fake_cuda::failCall("cudaFree", 1, cudaErrorUnknown);
  EXPECT_EQ(cudaFree(memory), cudaErrorUnknown);
  EXPECT_EQ(fake_cuda::allocatedBytes(), 0u);
}

TEST_F(FakeFaults, ACaptureWhoseEndFailsGivesNoGraph) {
  const cudaStream_t s = stream();
  const size_t handles = fake_cuda::liveHandles();
  ASSERT_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  fake_cuda::failCall("cudaStreamEndCapture", 1, cudaErrorUnknown);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(s, &graph), cudaErrorUnknown);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(fake_cuda::liveHandles(), handles);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
}

TEST_F(FakeFaults, TheLogHasFunctionThreadAndStream) {
  const cudaStream_t s = stream();
  fake_cuda::clearCalls();
  std::thread::id other;
  std::thread([&] {
    other = std::this_thread::get_id();
    EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  }).join();
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  const std::vector<fake_cuda::Call> calls = fake_cuda::calls();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].function, "cudaStreamSynchronize");
  EXPECT_EQ(calls[0].thread, other);
  EXPECT_EQ(calls[0].stream, s);
  EXPECT_EQ(calls[1].thread, std::this_thread::get_id());
  EXPECT_EQ(calls[1].stream, nullptr);
}

TEST_F(FakeFaults, AllocationsAndWaitsAreCounted) {
  const cudaStream_t s = stream();
  const cudaEvent_t e = event();
  const DeviceInts memory;
  int host = 0;
  const auto effects = [](auto call) {
    fake_cuda::clearCalls();
    EXPECT_EQ(call(), cudaSuccess);
    const fake_cuda::CallCounts counts = fake_cuda::callCounts();
    EXPECT_EQ(counts.all, 1u);
    return std::pair(counts.allocations, counts.waits);
  };
  const auto nothing = std::pair<size_t, size_t>(0, 0), allocates = std::pair<size_t, size_t>(1, 0),
             waits = std::pair<size_t, size_t>(0, 1);
  EXPECT_EQ(effects([&] { return cudaMemsetAsync(memory.data(), 0, 4, s); }), nothing);
  EXPECT_EQ(effects([&] { return cudaEventRecord(e, s); }), nothing);
  EXPECT_EQ(effects([&] { return cudaStreamWaitEvent(s, e, 0); }), nothing);
  void *other = nullptr;
  EXPECT_EQ(effects([&] { return cudaMalloc(&other, 4); }), allocates);
  EXPECT_EQ(effects([&] { return cudaFree(other); }), allocates);
  EXPECT_EQ(effects([&] { return cudaEventSynchronize(e); }), waits);
  EXPECT_EQ(effects([&] { return cudaStreamSynchronize(s); }), waits);
  EXPECT_EQ(effects([&] { return cudaDeviceSynchronize(); }), waits);
  EXPECT_EQ(effects([&] { return cudaMemset(memory.data(), 0, 4); }), waits);
  // To pageable memory a copy waits even if it is asynchronous; from there it does not.
  EXPECT_EQ(
      effects([&] { return cudaMemcpyAsync(&host, memory.data(), 4, cudaMemcpyDeviceToHost, s); }),
      waits);
  EXPECT_EQ(
      effects([&] { return cudaMemcpyAsync(memory.data(), &host, 4, cudaMemcpyHostToDevice, s); }),
      nothing);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
}

/// A host function runs without the fake GPU's lock: other threads may call CUDA meanwhile, and a
/// thread that waits for the same stream waits for the function.
TEST_F(FakeFaults, AHostFunctionMayWaitForAnotherThread) {
  const cudaStream_t s = stream(), other = stream();
  std::promise<void> started, finish;
  struct Data {
    std::promise<void> &started;
    std::future<void> finish;
  } data{started, finish.get_future()};
  const auto wait = [](void *data) {
    static_cast<Data *>(data)->started.set_value();
    static_cast<Data *>(data)->finish.wait();
  };
  ASSERT_EQ(cudaLaunchHostFunc(s, wait, &data), cudaSuccess);
  log(s, 2);
  std::thread first([&] { EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess); });
  started.get_future().wait();
  log(other, 1);
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  std::thread second([&] { EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess); });
  EXPECT_THAT(ran, ElementsAre(1));
  finish.set_value();
  first.join();
  second.join();
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

/// For ThreadSanitizer: threads that capture, replay and copy at once, each on its own stream.
TEST_F(FakeFaults, ThreadsUseItAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      cudaStream_t stream = nullptr;
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
      const CudaStream owner(stream);
      for (int i = 0; i < 50; ++i) {
        const DeviceInts from(1, t), to;
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
        ASSERT_EQ(cudaMemcpyAsync(to.data(), from.data(), 4, cudaMemcpyDeviceToDevice, stream),
                  cudaSuccess);
        ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
        const CudaGraph graphOwner(graph);
        ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
        const CudaGraphExec execOwner(exec);
        ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
        int host = -1;
        ASSERT_EQ(cudaMemcpyAsync(&host, to.data(), 4, cudaMemcpyDeviceToHost, stream),
                  cudaSuccess);
        ASSERT_EQ(host, t);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
} // namespace cgc::test
