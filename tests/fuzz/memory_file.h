// MemoryFile: an in-memory file (memfd), for readers that take a path.
#pragma once

#include "tests/fuzz/require.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace cgc::fuzz {

class MemoryFile final {
public:
  MemoryFile(const uint8_t *data, size_t size) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    CGC_REQUIRE(fd_ >= 0 && ::write(fd_, data, size) == ssize_t(size), std::strerror(errno));
  }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;
  ~MemoryFile() { ::close(fd_); }

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
  int fd_;
};

} // namespace cgc::fuzz
