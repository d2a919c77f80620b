// CUDA handles that free themselves, and CUDA errors as Status.
#pragma once

#include "runtime/base/status.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <string_view>
#include <type_traits>

namespace cgc {

/// Ok, or what failed with CUDA's own name and text. OutOfMemory for an allocation, else Device.
/// Clears the thread's last error, so that a later call does not report it again.
Status cudaStatus(cudaError_t error, std::string_view what);

/// Whether the device's context is lost: every later CUDA call of the process fails with it.
bool isSticky(cudaError_t error);

template <auto Destroy> struct CudaDeleter {
  template <class T> void operator()(T *handle) const { (void)Destroy(handle); }
};
template <class Handle, auto Destroy>
using CudaHandle = std::unique_ptr<std::remove_pointer_t<Handle>, CudaDeleter<Destroy>>;

using CudaStream = CudaHandle<cudaStream_t, cudaStreamDestroy>;
using CudaEvent = CudaHandle<cudaEvent_t, cudaEventDestroy>;
using CudaGraph = CudaHandle<cudaGraph_t, cudaGraphDestroy>;
using CudaGraphExec = CudaHandle<cudaGraphExec_t, cudaGraphExecDestroy>;

/// A stream that does not wait for the legacy default stream.
Result<CudaStream> createStream();
/// An event without timing.
Result<CudaEvent> createEvent();

/// Makes `device` current and puts the caller's device back. A negative device leaves everything as
/// it is.
class DeviceGuard final {
public:
  explicit DeviceGuard(int device);
  DeviceGuard(const DeviceGuard &) = delete;
  DeviceGuard &operator=(const DeviceGuard &) = delete;
  ~DeviceGuard();

private:
  int previous_ = -1;
};

} // namespace cgc
