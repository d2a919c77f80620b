// A fake GPU in host memory for tests: implements the CUDA runtime functions that cgc calls and is
// linked in place of the static CUDA runtime. Kernels run as their references.
//
// Work on a stream runs only when something waits for it, so a missing wait shows as stale data.
// Streams that no wait or event orders do not run in call order, and the nodes of a graph run in a
// random order that respects its edges. Device memory is filled with a poison value when it is
// allocated and when it is freed, is limited in size, and belongs to one device. Captures follow
// CUDA's rules: a forbidden call returns CUDA's error code and invalidates the capture.
//
// A programmatic edge orders its kernels completely, if the code of the second one waits, and not
// at all otherwise. There is no cudaStreamPerThread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace cgc::test::fake_cuda {

/// The machine that reset() sets up.
struct Machine {
  int devices = 1;
  uint64_t deviceBytes = uint64_t(1) << 30; ///< Memory of each device.
  unsigned seed = 1;                        ///< Of the random orders.
  uint64_t execBytes = 0; ///< Device memory that each executable graph takes from now on.
  /// Compute capability MAJOR.0 of each device. As in a build of cgc, kernels have code for 9.0
  /// that waits at a programmatic edge, and code compiled for compute_80, which does not wait, for
  /// others.
  int major = 9;
};
/// Sets up the machine, makes device 0 current for this thread, and clears faults and the call log.
/// Existing allocations and handles stay valid.
void reset(Machine machine = {});

/// Sets the memory of one device in bytes. What is allocated stays, even if it is more.
void setDeviceBytes(int device, uint64_t bytes);
/// Bytes of device memory, with that of executable graphs, and pinned host memory that are
/// currently allocated.
uint64_t allocatedBytes();
/// Bytes of one device's memory that are currently allocated, as they were requested.
uint64_t allocatedBytes(int device);
/// The number of existing streams, events, graphs and executable graphs, of handles of physical
/// memory, and of user objects that a caller holds a reference to.
size_t liveHandles();

/// Makes the `nth` call of `function` from now on, counted from 1, fail with `error`. After a
/// sticky fault every later call fails with it too. Functions that free or destroy still do so when
/// they fail.
void failCall(std::string function, int nth, cudaError_t error, bool sticky = false);
/// Likewise for the `nth` call of any function.
void failAnyCall(int nth, cudaError_t error, bool sticky = false);

/// A call of the CUDA runtime.
struct Call {
  std::string_view function;
  std::thread::id thread;
  cudaStream_t stream;    ///< As it was given; null for a function without one.
  bool allocates = false; ///< It allocated, freed, created or destroyed something.
  bool waits = false;     ///< It waited for work of the device.
};
/// The calls since reset() or clearCalls(), in order. cudaGetLastError and the names of errors are
/// not among them.
std::vector<Call> calls();
void clearCalls();

/// The number of calls since reset() or clearCalls().
struct CallCounts {
  size_t all = 0, allocations = 0, waits = 0;
};
CallCounts callCounts();
/// Whether this thread is in a function of the fake GPU.
bool isInCall();

/// Enqueues host code in place of a kernel. Under capture it becomes a kernel node, which has no
/// parameters. `work` may call neither CUDA nor the functions of this header.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

} // namespace cgc::test::fake_cuda
