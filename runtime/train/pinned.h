// PinnedMemory: host memory that copies to and from a GPU use while the host goes on.
#pragma once

#include "runtime/exec/cuda_support.h"

#include <cstdint>

namespace cgc {

/// Pinned memory with an event that marks the end of the last copy.
struct PinnedMemory {
  CudaHandle<void *, cudaFreeHost> pinned;
  CudaEvent done;
  uint64_t bytes = 0;

  std::byte *data() const { return static_cast<std::byte *>(pinned.get()); }

  static Result<PinnedMemory> allocate(uint64_t bytes) {
    PinnedMemory memory;
    void *data = nullptr;
    CGC_TRY(CGC_CUDA(cudaMallocHost(&data, bytes), "cannot allocate pinned host memory"));
    memory.pinned.reset(data);
    memory.bytes = bytes;
    CGC_ASSIGN_OR_RETURN(memory.done, createEvent());
    return memory;
  }
  Status mark(cudaStream_t stream) const {
    return CGC_CUDA(cudaEventRecord(done.get(), stream), "cannot record the end of a copy");
  }
  Status wait() const {
    return CGC_CUDA(cudaEventSynchronize(done.get()), "cannot wait for a step");
  }
  /// Whether the last copy has ended.
  Result<bool> isDone() const {
    const cudaError_t error = cudaEventQuery(done.get());
    if (error == cudaErrorNotReady) {
      (void)cudaGetLastError(); // It is no failure.
      return false;
    }
    CGC_TRY(cudaStatus(error, "cudaEventQuery", "cannot ask for the end of a step"));
    return true;
  }
};

} // namespace cgc
