// NewFolder: writes a folder of files so that readers see the old folder or all of the new one.
#pragma once

#include "runtime/base/status.h"

#include <span>
#include <string>
#include <string_view>

namespace cgc {

/// A folder beside its final place. The destructor removes it unless it was put in its place.
class NewFolder final {
public:
  /// Creates "`path`.tmp.PID", for files of these names, and removes such folders of processes that
  /// have ended. Usage if `path` exists and is something
  /// else than a folder with no other files; Failed if the folder cannot be created.
  static Result<NewFolder> create(const std::string &path, std::span<const std::string_view> files);
  NewFolder(NewFolder &&other) noexcept;
  NewFolder &operator=(NewFolder &&) = delete;
  ~NewFolder();

  /// The path of a file in the new folder.
  std::string file(std::string_view name) const { return temp_ + "/" + std::string(name); }

  /// Puts the folder in its place in one operation and removes the one that was there. On a file
  /// system that cannot exchange two folders, the old one is called "`path`.previous" for a moment.
  Status commit();

private:
  NewFolder(std::string path, std::string temp, std::span<const std::string_view> files)
      : path_(std::move(path)), temp_(std::move(temp)), files_(files) {}
  std::string path_, temp_; ///< temp_ is empty if there is nothing to remove.
  std::span<const std::string_view> files_;
  int lock_ = -1; ///< A descriptor that locks the new folder.
};

} // namespace cgc
