// Owning CUDA handles, CUDA errors as Status, and the current device.
#pragma once

#include "runtime/base/status.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <string_view>
#include <type_traits>

namespace cgc {

/// Converts the error of the CUDA function `function` to a Status: "`what`: cudaFree returned
/// cudaErrorInvalidValue (invalid argument)". OutOfMemory for a failed allocation, else Device.
/// Clears the thread's last error, so that a later call does not report it again.
Status cudaStatus(cudaError_t error, std::string_view function, std::string_view what);

/// The name of the function in the text of a call: "cudaFree" of "cudaFree(memory)".
constexpr std::string_view calledFunction(std::string_view call) {
  return call.substr(0, call.find('('));
}

/// cudaStatus() of a call of a CUDA function. Evaluates `what` only if the call fails: an exception
/// after a call that allocates would leak.
#define CGC_CUDA(call, what)                                                                       \
  [&](cudaError_t error) {                                                                         \
    return error == cudaSuccess ? ::cgc::Status::ok()                                              \
                                : ::cgc::cudaStatus(error, ::cgc::calledFunction(#call), (what));  \
  }(call)

/// Whether the error is sticky: the device's context is lost and every later CUDA call of the
/// process fails.
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

/// Creates a non-blocking stream, which does not synchronize with the legacy default stream.
Result<CudaStream> createStream();
/// Creates an event without timing.
Result<CudaEvent> createEvent();

/// The index of the GPU that `stream` belongs to. Not for a stream that is being captured: CUDA
/// refuses the question and makes the capture invalid.
Result<int> deviceOf(cudaStream_t stream);

/// Makes `device` current and restores the caller's device when destroyed. Does nothing for a
/// negative device.
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
