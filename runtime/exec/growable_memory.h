// GrowableMemory: memory that grows without moving, by reserving addresses first.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace cgc {

/// A range of reserved addresses, of which a growing part has memory. On a GPU by the driver's
/// virtual memory management (cuMemAddressReserve, cuMemMap; CUDA driver API, section 6.14), on the
/// host by mmap. The memory never moves, so captured graphs keep their addresses when it grows.
class GrowableMemory final {
public:
  GrowableMemory() = default;
  /// Reserves addresses for `maxBytes`, at least 1, without memory. `gpu` is the index of the
  /// current GPU and is ignored on the host.
  static Result<GrowableMemory> reserve(DeviceKind device, int gpu, uint64_t maxBytes);
  GrowableMemory(GrowableMemory &&other) noexcept { *this = std::move(other); }
  GrowableMemory &operator=(GrowableMemory &&other) noexcept;
  ~GrowableMemory() { release(); }

  /// Makes at least the first `bytes` bytes memory. What is memory already keeps its content; the
  /// content of the rest is undefined. OutOfMemory if there is not enough, or if `bytes` is more
  /// than was reserved; then nothing changes.
  Status grow(uint64_t bytes);
  /// The size to which grow(bytes) would make the memory grow: a multiple of the granularity.
  uint64_t sizeFor(uint64_t bytes) const;

  std::byte *data() const { return data_; }
  uint64_t size() const { return size_; }

private:
  struct Driver;
  Status growOnGpu(std::byte *at, uint64_t bytes);
  void release();
  std::shared_ptr<const Driver> driver_; ///< Found once, so that releasing needs no lookup.
  std::byte *data_ = nullptr;
  uint64_t size_ = 0, reserved_ = 0, granularity_ = 1;
  DeviceKind device_ = DeviceKind::Cpu;
  int gpu_ = -1;
};

} // namespace cgc
