// Cuda: LibTorch's CUDA functions without linking them. libtorch_cuda is opened with dlopen and
// reached through the registries of libc10 and a few exported symbols.
#pragma once

#include "runtime/base/status.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

namespace cgc::aten {

/// LibTorch's CUDA library for one device.
class Cuda {
public:
  /// Opens libtorch_cuda from the folder of libtorch_cpu and initializes LibTorch for `device`.
  /// Device if LibTorch has no CUDA build, there is no driver or no such GPU, or the process has
  /// used LibTorch before in a way that made it decide that there is no CUDA. May throw LibTorch's
  /// exceptions.
  static Result<Cuda> open(int device);

  /// Calls `body` with LibTorch's current device and stream set, and restores both afterwards.
  Status onStream(void *stream, const std::function<Status()> &body) const;

  /// Directs allocations for `stream` to a new private memory pool until endPool. Returns the
  /// pool's number, which LibTorch makes unique in the process.
  uint64_t beginPool(void *stream) const;
  void endPool(uint64_t pool) const;
  /// Allows LibTorch to free the pool's memory.
  void releasePool(uint64_t pool) const;

private:
  Cuda(c10::Device device, void *allocator, void *newPoolId)
      : device_(device), allocator_(allocator), newPoolId_(newPoolId) {}

  c10::Device device_;
  void *allocator_; ///< &c10::cuda::CUDACachingAllocator::allocator
  void *newPoolId_; ///< at::cuda::graph_pool_handle
};

} // namespace cgc::aten
