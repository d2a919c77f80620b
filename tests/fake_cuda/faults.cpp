// The fake GPU's faults, its log of calls, and the functions about errors.
#include "tests/fake_cuda/state.h"

#include <utility>

namespace cgc::test::fake_cuda {

cudaError_t State::begin(const char *function, cudaStream_t stream) {
  thisThread.call = calls.size();
  calls.push_back({function, std::this_thread::get_id(), stream});
  if (sticky != cudaSuccess)
    return sticky;
  cudaError_t error = cudaSuccess;
  for (auto fault = faults.begin(); fault != faults.end();) {
    const bool isMeant = fault->function.empty() || fault->function == function;
    if (!isMeant || --fault->callsLeft > 0) {
      ++fault;
      continue;
    }
    error = fault->error;
    if (fault->isSticky)
      sticky = error;
    fault = faults.erase(fault);
  }
  return error;
}

Call &State::currentCall() {
  // clearCalls() may have dropped it while a host function ran.
  static thread_local Call dropped;
  return thisThread.call < calls.size() ? calls[thisThread.call] : dropped;
}

void failCall(std::string function, int nth, cudaError_t error, bool sticky) {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  state.faults.push_back({std::move(function), nth, error, sticky});
}

void failAnyCall(int nth, cudaError_t error, bool sticky) {
  failCall("", nth, error, sticky);
}

std::vector<Call> calls() {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  return state.calls;
}

void clearCalls() {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  state.calls.clear();
}

CallCounts callCounts() {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  CallCounts counts{.all = state.calls.size()};
  for (const Call &call : state.calls) {
    counts.allocations += call.allocates;
    counts.waits += call.waits;
  }
  return counts;
}

bool isInCall() {
  return thisThread.isInCall;
}

} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

cudaError_t cudaGetLastError() {
  return std::exchange(thisThread.lastError, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  return thisThread.lastError;
}

const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define CGC_NAME(code)                                                                             \
  case code:                                                                                       \
    return #code;
    CGC_NAME(cudaSuccess)
    CGC_NAME(cudaErrorInvalidValue)
    CGC_NAME(cudaErrorMemoryAllocation)
    CGC_NAME(cudaErrorInvalidConfiguration)
    CGC_NAME(cudaErrorInvalidMemcpyDirection)
    CGC_NAME(cudaErrorInvalidDeviceFunction)
    CGC_NAME(cudaErrorNoDevice)
    CGC_NAME(cudaErrorInvalidDevice)
    CGC_NAME(cudaErrorInvalidResourceHandle)
    CGC_NAME(cudaErrorIllegalState)
    CGC_NAME(cudaErrorLossyQuery)
    CGC_NAME(cudaErrorNotReady)
    CGC_NAME(cudaErrorIllegalAddress)
    CGC_NAME(cudaErrorPeerAccessAlreadyEnabled)
    CGC_NAME(cudaErrorLaunchFailure)
    CGC_NAME(cudaErrorNotPermitted)
    CGC_NAME(cudaErrorNotSupported)
    CGC_NAME(cudaErrorStreamCaptureUnsupported)
    CGC_NAME(cudaErrorStreamCaptureInvalidated)
    CGC_NAME(cudaErrorStreamCaptureMerge)
    CGC_NAME(cudaErrorStreamCaptureUnmatched)
    CGC_NAME(cudaErrorStreamCaptureUnjoined)
    CGC_NAME(cudaErrorStreamCaptureIsolation)
    CGC_NAME(cudaErrorStreamCaptureImplicit)
    CGC_NAME(cudaErrorCapturedEvent)
    CGC_NAME(cudaErrorStreamCaptureWrongThread)
    CGC_NAME(cudaErrorGraphExecUpdateFailure)
    CGC_NAME(cudaErrorUnknown)
#undef CGC_NAME
  default:
    return "an error that the fake GPU has no name for";
  }
}

const char *cudaGetErrorString(cudaError_t) {
  return "a fault of the fake GPU";
}
