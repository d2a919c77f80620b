// Buffer: owned memory on the host or on the current GPU.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <memory>

namespace cgc {

/// Memory that is freed with the object, unless it is borrowed.
class Buffer final {
public:
  Buffer() = default;
  /// Allocates `bytes` bytes, aligned to kBufferAlignment. A buffer of 0 bytes still has a unique
  /// address. Host memory holds zeros, and the system provides its pages only when they are first
  /// touched. The content of GPU memory is undefined. OutOfMemory names the size.
  static Result<Buffer> allocate(DeviceKind device, uint64_t bytes);
  /// The memory of somebody else, who frees it.
  static Buffer borrow(std::byte *data, uint64_t bytes) {
    return {data, 0, bytes, [](void *) {}};
  }

  std::byte *data() const { return static_cast<std::byte *>(memory_.get()) + offset_; }
  uint64_t size() const { return size_; }

private:
  using Free = void (*)(void *);
  Buffer(void *memory, uint64_t offset, uint64_t size, Free free)
      : memory_(memory, free), offset_(offset), size_(size) {}
  std::unique_ptr<void, Free> memory_{nullptr, nullptr};
  uint64_t offset_ = 0; ///< Offset of the buffer in the allocation.
  uint64_t size_ = 0;
};

/// A size for messages: "1.7 GB", "230 MB", "96 bytes".
std::string byteText(uint64_t bytes);

} // namespace cgc
