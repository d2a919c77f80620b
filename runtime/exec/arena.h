// Arena: the memory of intermediate values, which contexts take turns to use.
#pragma once

#include "runtime/exec/buffer.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/exec/growable_memory.h"

#include <memory>
#include <mutex>

namespace cgc {

/// The memory of one context or, in a memory pool, of several. Runs that share it are ordered on
/// the device by an event, so that no thread waits for another's run.
class Arena final {
public:
  /// An arena of `bytes` bytes on the host or the current GPU.
  static Result<std::shared_ptr<Arena>> create(DeviceKind device, uint64_t bytes);
  /// An arena without memory, which may grow to `maxBytes` (GrowableMemory::reserve).
  static Result<std::shared_ptr<Arena>> createGrowable(DeviceKind device, int gpu,
                                                       uint64_t maxBytes);
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// Held while work that uses the arena is enqueued, on the host while it runs.
  std::mutex &turn() { return turn_; }
  /// Makes work on `stream` wait for all work that was marked. On a GPU, with turn() held.
  Status waitForLastRun(cudaStream_t stream);
  /// Marks the end of the work that was enqueued. On a GPU, with turn() held.
  Status markDone(cudaStream_t stream);
  /// Waits for all work that was marked. Does nothing on the host.
  void synchronize();

  /// GrowableMemory::grow, for a growable arena.
  Status grow(uint64_t bytes);
  uint64_t sizeFor(uint64_t bytes) const { return growable_.sizeFor(bytes); }

  std::byte *data() const { return growable_.data() ? growable_.data() : buffer_.data(); }
  uint64_t size() const { return growable_.data() ? growable_.size() : buffer_.size(); }

private:
  Arena() = default;
  static Result<std::shared_ptr<Arena>> createEmpty(DeviceKind device);
  std::mutex turn_;
  Buffer buffer_;
  GrowableMemory growable_;
  CudaEvent done_; ///< Null on the host.
};

} // namespace cgc
