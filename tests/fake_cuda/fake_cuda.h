// A GPU for tests, made of host memory: the functions of the CUDA runtime that cgc calls, linked in
// place of the static CUDA runtime.
//
// Work on a stream runs only when something waits for it: a missing wait shows as stale data.
// Streams that nothing orders do not run in the order of the calls. Device memory is poisoned when
// it is allocated and when it is freed, has a limit, and is told from host memory. A capture
// follows CUDA's rules: what CUDA forbids fails with CUDA's code and invalidates the capture.
//
// There is one device. Kernels do not run: a launch fails with cudaErrorInvalidDeviceFunction.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cgc::test::fake_cuda {

/// Forgets faults and the log of calls, and sets the size of the device memory in bytes.
/// Allocations and handles that are alive stay alive.
void reset(uint64_t deviceBytes = uint64_t(1) << 30);

/// Bytes of device and pinned host memory that are allocated now.
uint64_t allocatedBytes();
/// Streams, events, graphs and executable graphs that exist now.
size_t liveHandles();

/// The `nth` call of `function` from now on, counted from 1, fails with `error`. A sticky fault
/// stays: every later call fails with it too. Functions that free or destroy do so all the same.
void failCall(std::string function, int nth, cudaError_t error, bool sticky = false);

/// The functions that were called since reset(), in order.
std::vector<std::string> calls();

/// Enqueues host code that stands for a kernel; a capture makes it a kernel node.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

} // namespace cgc::test::fake_cuda
