// CUDA errors as Status, creation of streams and events, and the current device.
#include "runtime/exec/cuda_support.h"

namespace cgc {

Status cudaStatus(cudaError_t error, std::string_view function, std::string_view what) {
  if (error == cudaSuccess)
    return Status::ok();
  (void)cudaGetLastError();
  return {error == cudaErrorMemoryAllocation ? Code::OutOfMemory : Code::Device,
          std::string(what) + ": " + std::string(function) + " returned " +
              cudaGetErrorName(error) + " (" + cudaGetErrorString(error) + ")"};
}

bool isSticky(cudaError_t error) {
  switch (error) {
  case cudaErrorIllegalAddress:
  case cudaErrorLaunchFailure:
  case cudaErrorLaunchTimeout:
  case cudaErrorMisalignedAddress:
  case cudaErrorIllegalInstruction:
  case cudaErrorInvalidAddressSpace:
  case cudaErrorInvalidPc:
  case cudaErrorHardwareStackError:
  case cudaErrorAssert:
  case cudaErrorECCUncorrectable:
  case cudaErrorNvlinkUncorrectable:
  case cudaErrorContained:
  case cudaErrorTensorMemoryLeak:
  case cudaErrorExternalDevice:
  case cudaErrorDevicesUnavailable:
    return true;
  default:
    return false;
  }
}

Result<CudaStream> createStream() {
  cudaStream_t stream = nullptr;
  CGC_TRY(CGC_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                   "cannot create a stream"));
  return CudaStream(stream);
}

Result<CudaEvent> createEvent() {
  cudaEvent_t event = nullptr;
  CGC_TRY(
      CGC_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cannot create an event"));
  return CudaEvent(event);
}

Result<int> deviceOf(cudaStream_t stream) {
  int device = -1;
  CGC_TRY(CGC_CUDA(cudaStreamGetDevice(stream, &device), "cannot use the stream"));
  return device;
}

DeviceGuard::DeviceGuard(int device) {
  int current = 0;
  if (device < 0 || cudaGetDevice(&current) != cudaSuccess || current == device)
    return;
  if (cudaSetDevice(device) == cudaSuccess)
    previous_ = current;
}

DeviceGuard::~DeviceGuard() {
  if (previous_ >= 0)
    (void)cudaSetDevice(previous_);
}

} // namespace cgc
