// File patterns: checks patterns and matches them against the names in one folder.
#include "tools/cgc/io/file_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace cgc::tool {

namespace fs = std::filesystem;

bool isPattern(std::string_view path) {
  return path.find('*') != std::string_view::npos;
}

Status checkPattern(std::string_view path) {
  const size_t star = path.find('*'), slash = path.rfind('/');
  if (star == path.rfind('*') && (slash == std::string_view::npos || slash < star))
    return Status::ok();
  return Status(Code::Usage,
                fmt::format("'{}': one * may stand in the name of the file, as in in/*.npy", path));
}

std::string fillPattern(std::string_view pattern, std::string_view stem) {
  const size_t star = pattern.find('*');
  return fmt::format("{}{}{}", pattern.substr(0, star), stem, pattern.substr(star + 1));
}

Result<std::vector<std::string>> matchPattern(const std::string &pattern) {
  const fs::path path(pattern);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string name = path.filename().string();
  const std::string_view before = std::string_view(name).substr(0, name.find('*'));
  const std::string_view after = std::string_view(name).substr(name.find('*') + 1);
  std::vector<std::string> stems;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    const std::string found = file->path().filename().string();
    const bool isHidden = before.empty() && found.starts_with('.'); // Skipped, as a shell does.
    if (!isHidden && found.size() > before.size() + after.size() && found.starts_with(before) &&
        found.ends_with(after))
      stems.push_back(found.substr(before.size(), found.size() - before.size() - after.size()));
  }
  if (error)
    return Status(Code::InvalidFile, fmt::format("cannot read folder '{}': {}; check the path",
                                                 folder.string(), error.message()));
  if (stems.empty())
    return Status(Code::InvalidFile,
                  fmt::format("no file is called '{}'; check the path", pattern));
  std::ranges::sort(stems);
  return stems;
}

} // namespace cgc::tool
