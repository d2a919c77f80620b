// NewFolder: a temporary folder, and the exchange with the one that it replaces.
#include "runtime/train/folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <unistd.h>
#include <utility>

namespace cgc {
namespace {

namespace fs = std::filesystem;

Status cannot(const std::string &what, const std::string &path, int error) {
  return {Code::Failed, "cannot " + what + " '" + path + "': " + std::strerror(error)};
}

void removeFolder(const std::string &folder, std::span<const std::string_view> files) noexcept {
  std::error_code ignored;
  try {
    for (const std::string_view file : files)
      fs::remove(folder + "/" + std::string(file), ignored);
    fs::remove(folder, ignored);
  } catch (const std::exception &) { // No memory: the folder stays.
    return;
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

struct CloseFolder {
  void operator()(DIR *folder) const { ::closedir(folder); }
};

Status checkReplaceable(const std::string &path, std::span<const std::string_view> files) {
  // std::filesystem's iterator ends the process where no memory is left.
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
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
  removeFolder(temp, files); // Of a process with the same ID that was ended.
  if (!fs::create_directory(temp, error))
    return cannot("create the folder", temp, error ? error.value() : EEXIST);
  folder.temp_ = std::move(temp);
  return folder;
}

NewFolder::NewFolder(NewFolder &&other) noexcept
    : path_(std::move(other.path_)), temp_(std::move(other.temp_)), files_(other.files_) {
  other.temp_.clear();
}

NewFolder::~NewFolder() {
  if (!temp_.empty())
    removeFolder(temp_, files_);
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
