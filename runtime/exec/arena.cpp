// Arena: creation and the order of its users.
#include "runtime/exec/arena.h"

namespace cgc {

Result<std::shared_ptr<Arena>> Arena::createEmpty(DeviceKind device) {
  const std::shared_ptr<Arena> arena(new Arena);
  if (device == DeviceKind::Cuda) {
    CGC_ASSIGN_OR_RETURN(arena->done_, createEvent());
  }
  return arena;
}

Result<std::shared_ptr<Arena>> Arena::create(DeviceKind device, uint64_t bytes) {
  CGC_ASSIGN_OR_RETURN(std::shared_ptr<Arena> arena, createEmpty(device));
  CGC_ASSIGN_OR_RETURN(arena->buffer_, Buffer::allocate(device, bytes));
  return arena;
}

Result<std::shared_ptr<Arena>> Arena::createGrowable(DeviceKind device, int gpu,
                                                     uint64_t maxBytes) {
  CGC_ASSIGN_OR_RETURN(std::shared_ptr<Arena> arena, createEmpty(device));
  CGC_ASSIGN_OR_RETURN(arena->growable_, GrowableMemory::reserve(device, gpu, maxBytes));
  return arena;
}

Status Arena::waitForLastRun(cudaStream_t stream) {
  return CGC_CUDA(cudaStreamWaitEvent(stream, done_.get()), "cannot wait for the run before");
}

Status Arena::markDone(cudaStream_t stream) {
  return CGC_CUDA(cudaEventRecord(done_.get(), stream), "cannot record the end of the run");
}

void Arena::synchronize() {
  if (done_)
    (void)cudaEventSynchronize(done_.get());
}

Status Arena::grow(uint64_t bytes) {
  const std::lock_guard lock(turn_);
  return growable_.grow(bytes);
}

} // namespace cgc
