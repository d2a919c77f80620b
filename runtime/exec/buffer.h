// Buffer: memory on the host or on the current GPU, freed with the object.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <memory>

namespace cgc {

class Buffer final {
public:
  Buffer() = default;
  /// `bytes` may be 0: the buffer then still has an address of its own. Aligned to
  /// kBufferAlignment. On the host it holds zeros, without memory until it is touched; on a GPU
  /// its content is undefined. OutOfMemory names the size.
  static Result<Buffer> allocate(DeviceKind device, uint64_t bytes);

  std::byte *data() const { return static_cast<std::byte *>(memory_.get()) + offset_; }
  uint64_t size() const { return size_; }

private:
  using Free = void (*)(void *);
  Buffer(void *memory, uint64_t offset, uint64_t size, Free free)
      : memory_(memory, free), offset_(offset), size_(size) {}
  std::unique_ptr<void, Free> memory_{nullptr, nullptr};
  uint64_t offset_ = 0; ///< Of the buffer in the memory.
  uint64_t size_ = 0;
};

/// "1.7 GB", "230 MB", "96 bytes": for messages.
std::string byteText(uint64_t bytes);

} // namespace cgc
