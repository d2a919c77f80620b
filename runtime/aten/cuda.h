// Cuda: LibTorch's CUDA side, reached without linking it: libtorch_cuda is opened by dlopen and
// found through the registries of libc10 and a few exported symbols.
#pragma once

#include "runtime/base/status.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

namespace cgc::aten {

class Cuda {
public:
  /// Opens libtorch_cuda from where libtorch_cpu is and initialises LibTorch for `device`. Device
  /// if there is no CUDA build of LibTorch, no driver or no such GPU, or if LibTorch was used
  /// before in a way that fixed that there is no CUDA. May throw what LibTorch throws.
  static Result<Cuda> open(int device);

  /// Calls `body` with LibTorch's current device and stream set; both are set back afterwards.
  Status onStream(void *stream, const std::function<Status()> &body) const;

  /// A private memory pool for what `stream` allocates until endPool. Pools are numbered
  /// process-wide by LibTorch.
  uint64_t beginPool(void *stream) const;
  void endPool(uint64_t pool) const;
  void releasePool(uint64_t pool) const;

private:
  Cuda(c10::Device device, void *allocator, void *newPoolId)
      : device_(device), allocator_(allocator), newPoolId_(newPoolId) {}

  c10::Device device_;
  void *allocator_; ///< &c10::cuda::CUDACachingAllocator::allocator
  void *newPoolId_; ///< at::cuda::graph_pool_handle
};

} // namespace cgc::aten
