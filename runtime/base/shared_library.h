// Shared libraries that a user names: opened after a look at whether the file is whole.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <string>

namespace cgc {

/// dlopen of a file, whose symbols stay with it; it is never closed. InvalidFile with the cause if
/// it is missing, cut short (loading it would end the process by SIGBUS) or refused by the loader.
Result<void *> openSharedLibrary(const std::string &path);

/// A library's file, opened once: what is loaded is the file that was hashed, though its name may
/// stand for another one by then.
class LibraryFile final {
public:
  /// InvalidFile with the cause if it is missing or cut short.
  static Result<LibraryFile> open(const std::string &path);
  LibraryFile(LibraryFile &&other) noexcept;
  LibraryFile &operator=(LibraryFile &&) = delete;
  ~LibraryFile();

  /// xxhash64 of its bytes.
  uint64_t hash() const { return hash_; }
  /// As openSharedLibrary. The loader takes it for a file in /proc, so that `$ORIGIN` in its
  /// RUNPATH is not its folder.
  Result<void *> load();

private:
  LibraryFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  int fd_;
  std::string path_;
  uint64_t hash_ = 0;
};

} // namespace cgc
