// TempFolder: an empty folder for one test, removed with all it holds; and whole-file helpers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace cgc::test {

class TempFolder {
public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "cgc-test-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      ADD_FAILURE() << "cannot make a folder like " << name;
    path_ = name;
  }
  TempFolder(const TempFolder &) = delete;
  TempFolder &operator=(const TempFolder &) = delete;
  ~TempFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  const std::filesystem::path &path() const { return path_; }
  /// The names of all files in it, sorted.
  std::vector<std::string> list() const {
    std::vector<std::string> names;
    for (const auto &file : std::filesystem::directory_iterator(path_))
      names.push_back(file.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

private:
  std::filesystem::path path_;
};

inline void writeFile(const std::string &path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string readFile(const std::string &path) {
  std::stringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

} // namespace cgc::test
