// A fake GPU in host memory for tests: implements the CUDA runtime functions that cgc calls and is
// linked in place of the static CUDA runtime.
//
// Work on a stream runs only when something waits for it, so a missing wait shows as stale data.
// Streams that no wait or event orders do not run in call order. Device memory is filled with a
// poison value when it is allocated and when it is freed, is limited in size, and is distinguished
// from host memory. Captures follow CUDA's rules: a forbidden call returns CUDA's error code and
// invalidates the capture.
//
// There is one device. Kernels do not run: a launch returns cudaErrorInvalidDeviceFunction.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cgc::test::fake_cuda {

/// Clears faults and the call log and sets the size of the device memory in bytes. Existing
/// allocations and handles stay valid.
void reset(uint64_t deviceBytes = uint64_t(1) << 30);

/// Bytes of device memory and pinned host memory that are currently allocated.
uint64_t allocatedBytes();
/// The number of existing streams, events, graphs and executable graphs.
size_t liveHandles();

/// Makes the `nth` call of `function` from now on, counted from 1, fail with `error`. After a
/// sticky fault every later call fails with it too. Functions that free or destroy still do so when
/// they fail.
void failCall(std::string function, int nth, cudaError_t error, bool sticky = false);

/// The functions called since reset(), in order.
std::vector<std::string> calls();

/// Enqueues host code in place of a kernel. Under capture it becomes a graph node.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

} // namespace cgc::test::fake_cuda
