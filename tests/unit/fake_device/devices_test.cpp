// Several devices of the fake GPU: the current one, its memory and streams, and copies between
// them. The rules are those of "Multi-Device System" in the CUDA C++ Programming Guide.
#include "tests/unit/fake_device/fake_cuda_test.h"

#include <thread>

namespace cgc::test {
namespace {

using testing::ElementsAre;

class FakeDevices : public FakeCuda {
protected:
  FakeDevices() { fake_cuda::reset({.devices = 2}); }
  static void use(int device) { ASSERT_EQ(cudaSetDevice(device), cudaSuccess); }
};

/// "The current device" belongs to the host thread and is device 0 at first.
TEST_F(FakeDevices, TheCurrentDeviceBelongsToTheThread) {
  int count = 0, device = -1, others = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  use(1);
  std::thread([&] { EXPECT_EQ(cudaGetDevice(&others), cudaSuccess); }).join();
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(others, 0);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  fake_cuda::reset({.devices = 0});
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
}

TEST_F(FakeDevices, EachHasItsOwnMemory) {
  fake_cuda::setDeviceBytes(1, 100);
  void *memory = nullptr;
  use(1);
  EXPECT_EQ(cudaMalloc(&memory, 101), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
  use(0);
  EXPECT_EQ(fake_cuda::allocatedBytes(0), 0u);
  EXPECT_EQ(fake_cuda::allocatedBytes(1), 100u);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

/// "A memory copy will succeed even if it is issued to a stream that is not associated to the
/// current device", unlike a kernel launch. "cudaEventRecord() will fail if the input event and
/// input stream are associated to different devices."
TEST_F(FakeDevices, AStreamOfAnotherDeviceTakesCopiesButNeitherKernelsNorEvents) {
  const cudaStream_t first = stream();
  const DeviceInts memory(1, 3);
  use(1);
  const cudaEvent_t second = event();
  EXPECT_EQ(cudaEventRecord(second, first), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaMemsetAsync(memory.data(), 0, 4, first), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(first), cudaSuccess);
  EXPECT_THAT(memory.now(), ElementsAre(0));
  const void *const function = deviceKernel(*findKernel("layer_norm_f32")).function();
  cudaLaunchConfig_t config = {};
  config.gridDim = config.blockDim = 1;
  config.stream = first;
  EXPECT_EQ(cudaLaunchKernelExC(&config, function, nullptr), cudaErrorInvalidResourceHandle);
}

/// "cudaStreamWaitEvent() will succeed even if the input stream and input event are associated to
/// different devices", so that it can be used to synchronize devices.
TEST_F(FakeDevices, EventsOrderStreamsOfDifferentDevices) {
  const cudaStream_t first = stream();
  const cudaEvent_t recorded = event();
  log(first, 1);
  ASSERT_EQ(cudaEventRecord(recorded, first), cudaSuccess);
  use(1);
  const cudaStream_t second = stream();
  ASSERT_EQ(cudaStreamWaitEvent(second, recorded, 0), cudaSuccess);
  log(second, 2);
  ASSERT_EQ(cudaStreamSynchronize(second), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

/// "each device has its own default stream"; cudaDeviceSynchronize waits for the current device.
TEST_F(FakeDevices, EachHasItsOwnLegacyStream) {
  log(nullptr, 1);
  use(1);
  log(nullptr, 2);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(2));
  use(0);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(2, 1));
}

TEST_F(FakeDevices, PeerCopiesNameTheDevicesOfTheirMemory) {
  const DeviceInts from(1, 5);
  const cudaStream_t s = stream();
  use(1);
  const DeviceInts to;
  EXPECT_EQ(cudaMemcpyPeerAsync(to.data(), 0, from.data(), 1, 4, s), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyPeerAsync(to.data(), 2, from.data(), 0, 4, s), cudaErrorInvalidDevice);
  ASSERT_EQ(cudaMemcpyPeerAsync(to.data(), 1, from.data(), 0, 4, s), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(to.now(), ElementsAre(5));
}

} // namespace
} // namespace cgc::test
