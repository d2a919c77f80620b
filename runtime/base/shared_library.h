// Shared libraries that a user names: opened after a check that the file is complete.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <string>

namespace cgc {

/// Opens the library at `path` with dlopen and RTLD_LOCAL. The library is never closed. InvalidFile
/// with the cause if the file is missing, truncated (loading it would end the process by SIGBUS) or
/// refused by the dynamic loader.
Result<void *> openSharedLibrary(const std::string &path);

/// A library's file, opened once: load() loads the bytes that were hashed, even if the path refers
/// to another file by then.
class LibraryFile final {
public:
  /// InvalidFile with the cause if the file is missing or truncated.
  static Result<LibraryFile> open(const std::string &path);
  LibraryFile(LibraryFile &&other) noexcept;
  LibraryFile &operator=(LibraryFile &&) = delete;
  ~LibraryFile();

  /// The xxhash64 of the file's bytes.
  uint64_t hash() const { return hash_; }
  /// Loads the library as openSharedLibrary does. The dynamic loader sees a path under /proc, so
  /// `$ORIGIN` in the library's RUNPATH is not the library's folder.
  Result<void *> load();

private:
  LibraryFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  int fd_;
  std::string path_;
  uint64_t hash_ = 0;
};

} // namespace cgc
