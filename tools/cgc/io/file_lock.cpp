// FileLock: flock on the file that the path names now.
#include "tools/cgc/io/file_lock.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cgc::tool {

Result<FileLock> FileLock::take(const std::string &path) {
  while (true) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      return Status(Code::InvalidFile, "cannot read '" + path + "': " + std::strerror(errno));
    FileLock lock(path, fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return Status(Code::Busy, "another process is about to replace '" + path +
                                    "'; try again when it has ended");
    // The file that was opened may have been replaced before it was locked.
    if (lock.isCurrent())
      return lock;
  }
}

FileLock::FileLock(FileLock &&other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0)
    ::close(fd_); // Ends the lock.
}

bool FileLock::isCurrent() const {
  struct stat held{}, named{};
  return ::fstat(fd_, &held) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

Status FileLock::check() const {
  return isCurrent() ? Status::ok()
                     : Status(Code::Busy, "'" + path_ +
                                              "' was replaced or removed meanwhile; try "
                                              "again");
}

} // namespace cgc::tool
