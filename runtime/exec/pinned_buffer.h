// PinnedBuffer: pinned host memory, which copies to and from a GPU use while the host goes on.
#pragma once

#include "runtime/exec/buffer.h"
#include "runtime/exec/cuda_support.h"

#include <algorithm>
#include <cstdint>

namespace cgc {

/// Pinned host memory that is freed with the object.
class PinnedBuffer final {
public:
  PinnedBuffer() = default;
  /// Allocates `bytes` bytes, whose content is undefined. A buffer of 0 bytes still has an address.
  static Result<PinnedBuffer> allocate(uint64_t bytes) {
    void *data = nullptr;
    CGC_TRY(CGC_CUDA(cudaMallocHost(&data, std::max<uint64_t>(bytes, 1)),
                     "cannot allocate " + byteText(bytes) + " of pinned host memory"));
    PinnedBuffer buffer;
    buffer.memory_.reset(data);
    return buffer;
  }

  /// Null before allocate().
  std::byte *data() const { return static_cast<std::byte *>(memory_.get()); }

private:
  CudaHandle<void *, cudaFreeHost> memory_;
};

} // namespace cgc
