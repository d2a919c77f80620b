// FileLock: keeps two processes from replacing one file at once.
#pragma once

#include "runtime/base/status.h"

#include <string>

#include <sys/types.h>

namespace cgc::tool {

/// Held by a verb that reads a file and replaces it at the end. It is a lock of the kernel (flock),
/// which ends with the process. A file system without such locks gives none.
class FileLock final {
public:
  /// Busy if another process holds the lock. InvalidFile if the file cannot be read.
  static Result<FileLock> take(const std::string &path);
  FileLock(FileLock &&other) noexcept;
  FileLock &operator=(FileLock &&) = delete;
  ~FileLock();

  /// Busy if the path is no longer that of the locked file, which somebody without a lock has
  /// replaced or removed.
  Status check() const;

private:
  FileLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  bool isCurrent() const;

  std::string path_;
  int fd_;
};

} // namespace cgc::tool
