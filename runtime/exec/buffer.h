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
  /// kBufferAlignment, with undefined content. OutOfMemory names the size.
  static Result<Buffer> allocate(DeviceKind device, uint64_t bytes);

  std::byte *data() const { return data_.get(); }
  uint64_t size() const { return size_; }

private:
  using Free = void (*)(void *);
  Buffer(std::byte *data, uint64_t size, Free free) : data_(data, free), size_(size) {}
  std::unique_ptr<std::byte, Free> data_{nullptr, nullptr};
  uint64_t size_ = 0;
};

/// "1.7 GB", "230 MB", "96 bytes": for messages.
std::string byteText(uint64_t bytes);

} // namespace cgc
