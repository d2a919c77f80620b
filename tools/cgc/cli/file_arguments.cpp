// FileArguments: compares files by identity if they exist, else by normalized path.
#include "tools/cgc/cli/file_arguments.h"

#include "passes/manager/dump.h"
#include "runtime/base/file.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <sys/stat.h>

namespace cgc::tool {
namespace {

namespace fs = std::filesystem;

/// The absolute, canonical path. weakly_canonical alone keeps the path of a file that does not
/// exist relative and keeps its trailing slash.
fs::path normal(const fs::path &path) {
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  return whole.has_filename() ? whole : whole.parent_path();
}

/// A key that is equal for two names of one file, whether or not the file exists.
std::string identityOf(const fs::path &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0)
    return fmt::format("{}:{}", info.st_dev, info.st_ino);
  return normal(path).string();
}

bool isSameFile(const fs::path &a, const fs::path &b) {
  return identityOf(a) == identityOf(b);
}

/// Whether `path` is the folder of --dump-dir or a file that --dump-dir could write.
bool isDump(const std::string &path, const std::string &folder) {
  std::error_code ignored;
  const auto isInside = [&](const fs::path &file) {
    return isSameFile(file.parent_path(), folder) && passes::isDumpName(file.filename().string());
  };
  return isSameFile(path, folder) || isInside(fs::absolute(path, ignored)) ||
         isInside(normal(path));
}

Status overwritten(const std::string &path, std::string_view option) {
  return Status(Code::Usage, fmt::format("'{}' would be overwritten: another argument names it "
                                         "too; choose another name for {}",
                                         path, option));
}

} // namespace

FileArguments &FileArguments::reads(const std::string &path) {
  if (!path.empty())
    read_.push_back(path);
  return *this;
}

FileArguments &FileArguments::reads(const std::vector<std::string> &paths) {
  for (const std::string &path : paths)
    reads(path);
  return *this;
}

FileArguments &FileArguments::writes(std::string_view option, const std::string &path,
                                     const std::string &replaced) {
  if (!path.empty())
    written_.push_back({std::string(option), path, replaced});
  return *this;
}

FileArguments &FileArguments::dumpsTo(const std::string &folder) {
  dumpFolder_ = folder;
  return *this;
}

Status FileArguments::check() const {
  std::multimap<std::string, std::string> read; // Paths by identity.
  for (const std::string &path : read_)
    read.emplace(identityOf(path), path);
  std::set<std::string> written;
  for (const auto &[option, path, replaced] : written_) {
    if (path == "-")
      return Status(Code::Usage,
                    fmt::format("{} - : only a file can be written here; give its name", option));
    if (isStream(path)) // Takes any number of results.
      continue;
    const std::string identity = identityOf(path);
    for (auto [same, end] = read.equal_range(identity); same != end; ++same)
      if (same->second != replaced)
        return overwritten(path, option);
    if (!written.insert(identity).second)
      return overwritten(path, option);
  }
  if (!dumpFolder_.empty()) {
    for (const std::string &read : read_)
      if (isDump(read, dumpFolder_))
        return overwritten(read, "--dump-dir");
    for (const Written &written : written_)
      if (isDump(written.path, dumpFolder_))
        return overwritten(written.path, "--dump-dir");
  }
  // The temporary file is removed at once, because commit() is never called.
  for (const Written &written : written_)
    CGC_TRY(AtomicFile::create(written.path).status());
  return Status::ok();
}

} // namespace cgc::tool
