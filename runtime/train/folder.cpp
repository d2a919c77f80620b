// NewFolder: a temporary folder, and the exchange with the one that it replaces.
#include "runtime/train/folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

namespace cgc {
namespace {

namespace fs = std::filesystem;

Status cannot(const std::string &what, const std::string &path, int error) {
  return {Code::Failed, "cannot " + what + " '" + path + "': " + std::strerror(error)};
}

struct CloseFolder {
  void operator()(DIR *folder) const { ::closedir(folder); }
};

using Folder = std::unique_ptr<DIR, CloseFolder>;

/// Whether `name` is one of `files`, or what an AtomicFile calls one that is not whole.
bool isOneOf(std::string_view name, std::span<const std::string_view> files) {
  return std::ranges::any_of(files, [&](std::string_view file) {
    return name == file ||
           (name.starts_with(file) && name.substr(file.size()).starts_with(".tmp."));
  });
}

void removeFolder(const std::string &folder, std::span<const std::string_view> files) noexcept {
  std::error_code ignored;
  try {
    const Folder open(::opendir(folder.c_str()));
    while (const dirent *const entry = open ? ::readdir(open.get()) : nullptr)
      if (isOneOf(entry->d_name, files))
        fs::remove(folder + "/" + entry->d_name, ignored);
    fs::remove(folder, ignored);
  } catch (const std::exception &) { // No memory: the folder stays.
    return;
  }
}

/// Removes a temporary folder of the process `process`, unless that is alive. In another container
/// or on another machine the process has another ID, and its lock shows that it is alive.
void removeIfAbandoned(const std::string &folder, pid_t process,
                       std::span<const std::string_view> files) {
  if (process != ::getpid() && (::kill(process, 0) == 0 || errno != ESRCH))
    return;
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0)
    removeFolder(folder, files);
  ::close(fd);
}

/// Removes the temporary folders "`place`.tmp.PID" of processes that have ended.
void removeAbandoned(const std::string &place, std::span<const std::string_view> files) {
  const fs::path path(place);
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".",
                    prefix = path.filename().string() + ".tmp.";
  const Folder folder(::opendir(parent.c_str()));
  while (const dirent *const entry = folder ? ::readdir(folder.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    pid_t process = 0;
    if (name.starts_with(prefix))
      if (const auto read =
              std::from_chars(name.data() + prefix.size(), name.data() + name.size(), process);
          read.ec == std::errc() && read.ptr == name.data() + name.size() && process > 0)
        removeIfAbandoned(parent + "/" + std::string(name), process, files);
  }
}

/// Some file systems cannot sync a folder, which is no error.
void syncFolder(const std::string &folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return;
  ::fsync(fd);
  ::close(fd);
}

Status checkReplaceable(const std::string &path, std::span<const std::string_view> files) {
  // std::filesystem's iterator ends the process where no memory is left.
  const Folder folder(::opendir(path.c_str()));
  if (!folder && errno == ENOENT)
    return Status::ok();
  if (!folder && errno == ENOTDIR)
    return {Code::Usage, "'" + path + "' exists and is no folder; give another path"};
  if (!folder)
    return cannot("read", path, errno);
  while (const dirent *const entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && std::ranges::find(files, name) == files.end())
      return {Code::Usage, "'" + path + "' is no checkpoint, which would be replaced: it has '" +
                               std::string(name) + "'; give another folder"};
  }
  return Status::ok();
}

} // namespace

Result<NewFolder> NewFolder::create(const std::string &path,
                                    std::span<const std::string_view> files) {
  std::string place = path;
  while (place.size() > 1 && place.ends_with('/'))
    place.pop_back();
  if (place.empty())
    return Status(Code::Usage, "the path of the checkpoint is empty");
  std::error_code error;
  if (fs::is_symlink(place, error)) { // An exchange would replace the link.
    place = fs::canonical(place, error).string();
    if (error)
      return cannot("follow the link", path, error.value());
  }
  CGC_TRY(checkReplaceable(place, files));
  std::string temp = place + ".tmp." + std::to_string(::getpid());
  NewFolder folder(std::move(place), std::string(), files);
  removeAbandoned(folder.path_, files);
  if (!fs::create_directory(temp, error))
    return cannot("create the folder", temp, error ? error.value() : EEXIST);
  folder.temp_ = std::move(temp);
  folder.lock_ = ::open(folder.temp_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder.lock_ >= 0) // Some file systems have no locks.
    (void)::flock(folder.lock_, LOCK_EX | LOCK_NB);
  return folder;
}

NewFolder::NewFolder(NewFolder &&other) noexcept
    : path_(std::move(other.path_)), temp_(std::move(other.temp_)), files_(other.files_),
      lock_(std::exchange(other.lock_, -1)) {
  other.temp_.clear();
}

NewFolder::~NewFolder() {
  if (!temp_.empty())
    removeFolder(temp_, files_);
  if (lock_ >= 0)
    ::close(lock_);
}

Status NewFolder::commit() {
  const std::string previous = path_ + ".previous";
  const std::string parent = fs::path(path_).parent_path().string();
  syncFolder(temp_);
  if (::renameat2(AT_FDCWD, temp_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) {
    removeFolder(temp_, files_); // The folder that was there.
  } else if (errno == ENOENT) {
    if (::rename(temp_.c_str(), path_.c_str()) != 0)
      return cannot("create", path_, errno);
  } else {
    removeFolder(previous, files_); // Of a save that was interrupted here.
    if (::rename(path_.c_str(), previous.c_str()) != 0)
      return cannot("replace", path_, errno);
    if (::rename(temp_.c_str(), path_.c_str()) != 0) {
      const int error = errno;
      (void)::rename(previous.c_str(), path_.c_str());
      return cannot("create", path_, error);
    }
    removeFolder(previous, files_);
  }
  temp_.clear();
  syncFolder(parent.empty() ? "." : parent);
  return Status::ok();
}

} // namespace cgc
