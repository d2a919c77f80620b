// Memory of the fake GPU: sizes, owners, copies, and what a kernel may access.
#include "tests/unit/fake_device/fake_cuda_test.h"

namespace cgc::test {
namespace {

using testing::Each;
using testing::ElementsAre;

class FakeMemory : public FakeCuda {};

TEST_F(FakeMemory, EveryByteCountsAndMemoryRunsOut) {
  fake_cuda::reset({.deviceBytes = 1000});
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(cudaMalloc(&first, 999), cudaSuccess);
  EXPECT_EQ(fake_cuda::allocatedBytes(0), 999u);
  EXPECT_EQ(cudaMalloc(&second, 2), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&second, 1), cudaSuccess);
  size_t free = 1, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, 0u);
  EXPECT_EQ(total, 1000u);
  EXPECT_EQ(cudaFree(first), cudaSuccess);
  EXPECT_EQ(cudaFree(second), cudaSuccess);
  EXPECT_EQ(fake_cuda::allocatedBytes(), 0u);
  EXPECT_EQ(cudaFree(second), cudaErrorInvalidValue);
}

TEST_F(FakeMemory, FreshAndFreedMemoryIsPoisoned) {
  void *memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  const auto *const bytes = static_cast<const uint8_t *>(memory);
  EXPECT_THAT(std::vector(bytes, bytes + 4), Each(0xa5));
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_THAT(std::vector(bytes, bytes + 4), Each(0xdd)); // It is kept until reset().
}

/// cudaMemcpyAsync: kind "specifies the direction of the copy"; the fake GPU refuses what CUDA
/// leaves undefined.
TEST_F(FakeMemory, ACopyHasTheDirectionOfItsKind) {
  const DeviceInts device;
  int host = 1;
  const cudaStream_t s = stream();
  EXPECT_EQ(cudaMemcpyAsync(&host, device.data(), 4, cudaMemcpyHostToDevice, s),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device.data(), &host, 4, cudaMemcpyDeviceToDevice, s),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device.data(), &host, 8, cudaMemcpyHostToDevice, s),
            cudaErrorInvalidValue); // Past the end.
  EXPECT_EQ(cudaMemcpyAsync(device.data(), &host, 4, cudaMemcpyKind(7), s),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemsetAsync(&host, 0, 4, s), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device.data(), &host, 4, cudaMemcpyDefault, s), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(device.now(), ElementsAre(1));
}

/// "API synchronization behavior" of the CUDA Runtime API: a copy from pageable memory has read it
/// when it returns, and a copy to pageable memory is complete.
TEST_F(FakeMemory, CopiesOfPageableMemoryDoNotReferToItLater) {
  const DeviceInts device;
  const cudaStream_t s = stream();
  int host = 7;
  ASSERT_EQ(cudaMemcpyAsync(device.data(), &host, 4, cudaMemcpyHostToDevice, s), cudaSuccess);
  host = 0;
  EXPECT_THAT(device.now(), ElementsAre(0)); // But the copy need not have run.
  ASSERT_EQ(cudaMemcpyAsync(&host, device.data(), 4, cudaMemcpyDeviceToHost, s), cudaSuccess);
  EXPECT_EQ(host, 7);
}

TEST_F(FakeMemory, CopiesOfPinnedMemoryWaitForNothing) {
  const DeviceInts device;
  const cudaStream_t s = stream();
  void *memory = nullptr;
  ASSERT_EQ(cudaMallocHost(&memory, 4), cudaSuccess);
  int &host = *static_cast<int *>(memory);
  host = 7;
  ASSERT_EQ(cudaMemcpyAsync(device.data(), &host, 4, cudaMemcpyHostToDevice, s), cudaSuccess);
  host = 8; // Too early: the copy has not read it.
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(device.now(), ElementsAre(8));
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue); // It is not device memory.
  EXPECT_EQ(cudaFreeHost(memory), cudaSuccess);
}

TEST_F(FakeMemory, TwoDimensionalCopiesAndFillsKeepThePitch) {
  const DeviceInts from(6), to(6);
  const cudaStream_t s = stream();
  std::vector<int> values(6);
  std::iota(values.begin(), values.end(), 1);
  ASSERT_EQ(cudaMemcpy(from.data(), values.data(), 24, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy2DAsync(to.data(), 8, from.data(), 12, 12, 2, cudaMemcpyDeviceToDevice, s),
            cudaErrorInvalidPitchValue);
  ASSERT_EQ(cudaMemcpy2DAsync(to.data(), 12, from.data(), 12, 8, 2, cudaMemcpyDeviceToDevice, s),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(to.now(), ElementsAre(1, 2, 0, 4, 5, 0));
  ASSERT_EQ(cudaMemset2DAsync(to.data(), 12, -1, 4, 2, s), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(to.now(), ElementsAre(-1, 2, 0, -1, 5, 0));
}

/// cudaPointerGetAttributes: the type of memory, the device on which it resides, and no host
/// pointer for memory that the host cannot access.
TEST_F(FakeMemory, AttributesSayWhereAPointerPoints) {
  fake_cuda::reset({.devices = 2});
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const DeviceInts device(2);
  void *pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 4), cudaSuccess);
  int host = 0;
  const auto attributes = [](const void *data) {
    cudaPointerAttributes attributes = {};
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, data), cudaSuccess);
    return attributes;
  };
  EXPECT_EQ(attributes(device.data() + 1).type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes(device.data()).device, 1);
  EXPECT_EQ(attributes(device.data()).devicePointer, device.data());
  EXPECT_EQ(attributes(device.data()).hostPointer, nullptr);
  EXPECT_EQ(attributes(pinned).type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes(&host).type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(attributes(device.data() + 2).type, cudaMemoryTypeUnregistered); // Past the end.
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

/// cudaMallocManaged: "The allocated pointer is valid on the CPU and on all GPUs in the system that
/// support managed memory." A copy may take it for either.
TEST_F(FakeMemory, ManagedMemoryIsOfTheHostAndOfADevice) {
  void *memory = nullptr;
  ASSERT_EQ(cudaMallocManaged(&memory, 4), cudaSuccess);
  cudaPointerAttributes attributes = {};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  EXPECT_EQ(attributes.devicePointer, memory);
  EXPECT_EQ(attributes.hostPointer, memory);
  int host = 7;
  EXPECT_EQ(cudaMemcpy(memory, &host, 4, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(*static_cast<int *>(memory), 7);
  const DeviceInts device;
  EXPECT_EQ(cudaMemcpy(device.data(), memory, 4, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(device.data(), memory, 4, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_THAT(device.now(), ElementsAre(7));
  EXPECT_EQ(cudaMemcpy(memory, device.data(), 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(FakeMemory, ACopyFromFreedPinnedMemoryFaults) {
  const DeviceInts device;
  const cudaStream_t s = stream();
  void *memory = nullptr;
  ASSERT_EQ(cudaMallocHost(&memory, 4), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(device.data(), memory, 4, cudaMemcpyHostToDevice, s), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(memory), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
}

/// A copy that runs after its memory was freed is an illegal access, which is sticky.
TEST_F(FakeMemory, ACopyToFreedMemoryFaults) {
  const cudaStream_t s = stream();
  {
    const DeviceInts device;
    ASSERT_EQ(cudaMemsetAsync(device.data(), 0, 4, s), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
}

} // namespace
} // namespace cgc::test
