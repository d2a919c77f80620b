// FileArguments: checks before the long work that every output file can be written and that no
// input file is overwritten.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace cgc::tool {

/// The files that a verb's arguments name. Every verb that writes files declares all of them here.
/// Empty paths are ignored.
class FileArguments final {
public:
  FileArguments &reads(const std::string &path);
  FileArguments &reads(const std::vector<std::string> &paths);
  /// Declares a file to write. `replaced` is a file that is read and that may be this one: the verb
  /// replaces it at the end.
  FileArguments &writes(std::string_view option, const std::string &path,
                        const std::string &replaced = "");
  /// Declares the folder of --dump-dir.
  FileArguments &dumpsTo(const std::string &folder);

  /// Usage if a file to write is "-", is also read, or is written by two options. Two links to one
  /// file count as one file; a stream such as /dev/null takes any number of results. Failed if a
  /// file cannot be created. Creates no file that remains.
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
