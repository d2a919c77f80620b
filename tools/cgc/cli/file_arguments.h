// FileArguments: says before the long work what would stop the writing after it, and keeps what is
// read from being written.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace cgc::tool {

/// The files that a verb's arguments name. Every verb that writes names them all here: empty paths
/// do not count.
class FileArguments final {
public:
  FileArguments &reads(const std::string &path);
  FileArguments &reads(const std::vector<std::string> &paths);
  /// `replaced` is what is read and may be this file all the same: it is replaced at the end.
  FileArguments &writes(std::string_view option, const std::string &path,
                        const std::string &replaced = "");
  /// A folder for the files of --dump-dir.
  FileArguments &dumpsTo(const std::string &folder);

  /// Usage if a file that is written is "-", is read, or is written by two options (links count;
  /// a stream such as /dev/null takes any number of results); Failed if it cannot be created.
  /// Leaves nothing behind.
  Status check() const;

private:
  struct Written {
    std::string option, path, replaced;
  };
  std::vector<std::string> read_;
  std::vector<Written> written_;
  std::string dumpFolder_;
};

} // namespace cgc::tool
