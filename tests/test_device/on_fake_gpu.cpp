// The fake GPU as the device of the session tests.
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/test_device/test_device.h"

namespace cgc::test {

const DeviceKind kTestDevice = DeviceKind::Cuda;

Status doWork(void *stream, std::function<void()> work) {
  const cudaError_t error = fake_cuda::enqueue(cudaStream_t(stream), std::move(work));
  return error == cudaSuccess ? Status::ok() : Status(Code::Device, cudaGetErrorName(error));
}

uint64_t deviceBytesInUse() {
  return fake_cuda::allocatedBytes();
}
size_t deviceHandlesInUse() {
  return fake_cuda::liveHandles();
}

} // namespace cgc::test
