// PinnedMemory: host memory that copies to and from a GPU use while the host goes on.
#pragma once

#include "runtime/exec/pinned_buffer.h"

namespace cgc {

/// Pinned memory with an event that marks the end of the last copy.
struct PinnedMemory {
  PinnedBuffer buffer;
  CudaEvent done;
  uint64_t bytes = 0;

  std::byte *data() const { return buffer.data(); }

  static Result<PinnedMemory> allocate(uint64_t bytes) {
    PinnedMemory memory;
    CGC_ASSIGN_OR_RETURN(memory.buffer, PinnedBuffer::allocate(bytes));
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
