// checkOutputPath: by file identity where the files exist, else by normalised path.
#include "tools/cgc/output_path.h"

#include "runtime/base/file.h"

#include <fmt/format.h>

#include <filesystem>

namespace cgc::tool {
namespace {

namespace fs = std::filesystem;

bool isSameFile(const std::string &a, const std::string &b) {
  std::error_code ignored;
  if (fs::equivalent(a, b, ignored))
    return true;
  // Of what does not exist, weakly_canonical keeps a relative path relative.
  const auto normal = [&](const std::string &path) {
    return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  };
  const fs::path first = normal(a);
  return !first.empty() && first == normal(b);
}

} // namespace

Status checkOutputPath(std::string_view option, const std::string &path,
                       std::span<const std::string> others) {
  if (path == "-")
    return Status(Code::Usage,
                  fmt::format("{} - : only a file can be written here; give its name", option));
  for (const std::string &other : others)
    if (!other.empty() && isSameFile(path, other))
      return Status(Code::Usage, fmt::format("'{}' would be overwritten: another argument names it "
                                             "too; choose another file for {}",
                                             path, option));
  // Created and at once removed again: commit() is never called.
  return AtomicFile::create(path).status();
}

} // namespace cgc::tool
