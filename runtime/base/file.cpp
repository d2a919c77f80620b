// Files: read-only mappings, atomic replacement, removal of temporary files on interruption, and
// hashing.
#include "runtime/base/file.h"

#include "runtime/base/check.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

// xxhash is used header-only, so that a deployment needs no xxhash library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cgc {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string &path) {
  return "'" + path + "'";
}

std::string errnoText(int error) {
  return std::strerror(error);
}

/// The temporary files that a signal handler has to unlink. A handler may use neither the heap nor
/// a lock, so the table is static and of fixed size. A row is free, being written, or valid.
class TemporaryTable {
public:
  /// False if every row is taken or the path is too long.
  bool add(const char *path) noexcept {
    const size_t length = std::strlen(path);
    for (Row &row : rows_) {
      int expected = kFree;
      if (length < sizeof(row.path) && row.state.compare_exchange_strong(expected, kWriting)) {
        std::memcpy(row.path, path, length + 1);
        row.state.store(kValid, std::memory_order_release);
        return true;
      }
    }
    return false;
  }
  void remove(const char *path) noexcept {
    for (Row &row : rows_)
      if (row.state.load(std::memory_order_acquire) == kValid && !std::strcmp(row.path, path))
        row.state.store(kFree, std::memory_order_release);
  }
  void unlinkAll() noexcept {
    for (Row &row : rows_)
      if (row.state.load(std::memory_order_acquire) == kValid)
        ::unlink(row.path);
  }

private:
  enum : int { kFree, kWriting, kValid };
  struct Row {
    std::atomic<int> state{kFree};
    char path[PATH_MAX] = {};
  };
  static_assert(std::atomic<int>::is_always_lock_free);
  std::array<Row, 128> rows_{};
};

/// The only mutable static of cgc: a signal handler has no other way to reach the table.
constinit TemporaryTable openTemporaries;

Status cannotWrite(const std::string &path, int error) {
  std::string next;
  if (error == ENOSPC || error == EDQUOT)
    next = "; free some space or choose another place";
  else if (error == EACCES || error == EPERM || error == EROFS)
    next = "; choose a folder you may write to";
  return {Code::Failed, "cannot write " + quoted(path) + ": " + errnoText(error) + next};
}

/// "a/b" -> "a", "b" -> ".", "/b" -> "/".
std::string parentFolder(const std::string &path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// The open descriptor of this process that `path` names, directly or through symbolic links; -1 if
/// none.
int ownDescriptor(fs::path path) {
  std::error_code error;
  const fs::path descriptors = fs::canonical("/proc/self/fd", error);
  constexpr int kMaxLinks = 40; // Linux's limit on nested symbolic links.
  for (int links = 0; !error && links < kMaxLinks; ++links) {
    const fs::path folder = fs::canonical(fs::absolute(path, error).parent_path(), error);
    const std::string name = path.filename().string();
    if (!error && folder == descriptors) {
      int descriptor = -1;
      const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), descriptor);
      return bad == std::errc() && end == name.data() + name.size() ? descriptor : -1;
    }
    path = folder / fs::read_symlink(folder / name, error);
  }
  return -1;
}

bool isCharacterDevice(const std::string &path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISCHR(info.st_mode);
}

/// Creates a file with an unused name in the folder of `path` and stores its path in `temp`.
/// Returns -1 and sets errno on failure.
int openUnique(const std::string &path, std::string &temp) {
  // At most this many bytes of the file's own name are kept, so that the name with its suffix stays
  // within NAME_MAX.
  constexpr size_t kMaxNamePrefix = 100;
  const size_t name = path.rfind('/') + 1; // npos + 1 is 0.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    temp = path.substr(0, name + kMaxNamePrefix) + ".tmp." + std::to_string(::getpid()) + "." +
           std::to_string(attempt);
    const int fd = ::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST)
      return fd;
  }
  return -1;
}

} // namespace

Result<MappedFile> MappedFile::open(const std::string &path) {
  // O_NONBLOCK: opening a FIFO would otherwise wait for a writer before it could be refused.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return Status(Code::InvalidFile, errno == ENOENT
                                         ? quoted(path) + " does not exist; check the path"
                                         : "cannot read " + quoted(path) + ": " + errnoText(errno));
  struct stat info;
  Status status;
  void *data = nullptr;
  if (::fstat(fd, &info) != 0)
    status = {Code::InvalidFile, "cannot read " + quoted(path) + ": " + errnoText(errno)};
  else if (S_ISDIR(info.st_mode))
    status = {Code::InvalidFile, quoted(path) + " is a directory; give the path of a file"};
  else if (!S_ISREG(info.st_mode))
    status = {Code::InvalidFile, quoted(path) + " is not a regular file; copy it to one first"};
  else if (info.st_size == 0)
    status = {Code::InvalidFile, quoted(path) + " is empty; write it again"};
  else {
    data = ::mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED && errno == ENOMEM)
      status = {
          Code::OutOfMemory,
          "cannot map " + quoted(path) + ": there are no addresses left for its " +
              std::to_string(info.st_size) +
              " bytes; raise the limit of the process (ulimit -v), or run fewer things in it"};
    else if (data == MAP_FAILED)
      status = {Code::InvalidFile, "cannot map " + quoted(path) + ": " + errnoText(errno)};
  }
  ::close(fd);
  if (!status.isOk())
    return status;
  return MappedFile(static_cast<const std::byte *>(data), info.st_size);
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_)
    ::munmap(const_cast<std::byte *>(data_), size_);
}

bool isStream(const std::string &path) {
  return isCharacterDevice(path) || ownDescriptor(path) >= 0;
}

/// Resolves the symbolic links of `path`, because a rename onto a link would replace the link.
/// Refuses links under /proc and /dev to a file that another process has open: that process would
/// keep writing to the old file.
static Result<std::string> resolveLinks(const std::string &path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode))
    return path;
  const auto isOfSystem = [](std::string_view name) {
    return name.starts_with("/proc/") || name.starts_with("/dev/");
  };
  char target[PATH_MAX + 1] = {};
  if (isOfSystem(path) || ::readlink(path.c_str(), target, PATH_MAX) < 0 || isOfSystem(target))
    return Status(Code::Failed, "cannot write " + quoted(path) +
                                    ": it stands for what another process has open; give the name "
                                    "of a file");
  char resolved[PATH_MAX];
  if (!::realpath(path.c_str(), resolved))
    return Status(Code::Failed, "cannot write " + quoted(path) + ": it is a link to " +
                                    quoted(target) + ": " + errnoText(errno) +
                                    "; create that file, or give another name");
  return std::string(resolved);
}

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  if (isStream(path)) {
    // A duplicated descriptor shares its file position with the open one.
    const int own = ownDescriptor(path);
    const int fd = own >= 0 ? ::fcntl(own, F_DUPFD_CLOEXEC, 0)
                            : ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
      return cannotWrite(path, errno);
    return AtomicFile(fd, path, "");
  }
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode))
      return Status(Code::Failed, "cannot write " + quoted(path) +
                                      ": it is a directory; give a file name inside it");
    if (!S_ISREG(info.st_mode))
      return Status(Code::Failed, "cannot write " + quoted(path) +
                                      ": it is not a regular file; give the name of a file");
  } else if (errno == ENAMETOOLONG) { // The temporary name could be short enough.
    return cannotWrite(path, errno);
  }
  CGC_ASSIGN_OR_RETURN(std::string kept, resolveLinks(path));
  const std::string folder = parentFolder(kept);
  if (::stat(folder.c_str(), &info) != 0)
    return Status(Code::Failed, "cannot write " + quoted(path) + ": folder " + quoted(folder) +
                                    ": " + errnoText(errno) + "; create it first");
  // Nothing may throw between opening the file and adding it to the table: an exception would leave
  // the file behind.
  std::string temp;
  const int fd = openUnique(kept, temp);
  if (fd < 0)
    return cannotWrite(path, errno);
  if (!openTemporaries.add(temp.c_str())) {
    ::close(fd);
    ::unlink(temp.c_str());
    return Status(Code::Failed, "cannot write " + quoted(path) +
                                    ": its path is too long or too many files are being written");
  }
  return AtomicFile(fd, std::move(kept), std::move(temp));
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : fd_(std::exchange(other.fd_, -1)), position_(other.position_), path_(std::move(other.path_)),
      tempPath_(std::move(other.tempPath_)) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0)
    return;
  ::close(fd_);
  if (tempPath_.empty())
    return;
  ::unlink(tempPath_.c_str());
  openTemporaries.remove(tempPath_.c_str());
}

Status AtomicFile::write(const void *data, size_t size) {
  CGC_CHECK(fd_ >= 0 && "write after commit");
  const char *bytes = static_cast<const char *>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd_, bytes, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return cannotWrite(path_, errno);
    bytes += written;
    size -= written;
    position_ += written;
  }
  return Status::ok();
}

Status AtomicFile::commit() {
  CGC_CHECK(fd_ >= 0 && "commit twice");
  if (tempPath_.empty())
    return ::close(std::exchange(fd_, -1)) == 0 ? Status::ok() : cannotWrite(path_, errno);
  const std::string parent = parentFolder(path_); // May throw, so it comes before the rename.
  if (::fsync(fd_) != 0 || ::rename(tempPath_.c_str(), path_.c_str()) != 0)
    return cannotWrite(path_, errno);
  openTemporaries.remove(tempPath_.c_str());
  ::close(std::exchange(fd_, -1));
  // fsync on the folder makes the rename durable. Some file systems cannot sync a folder, which is
  // not an error.
  const int folder = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return Status::ok();
}

void removeOpenTemporaries() noexcept {
  openTemporaries.unlinkAll();
}

uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH64(bytes.data(), bytes.size(), 0);
}

} // namespace cgc
