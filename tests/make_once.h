// makeOnce: runs a Python script that makes models for tests, once for all tests and runs.
#pragma once

#include "tests/paths.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cgc::test {

/// The path as a word of a shell command: the clone may be in a folder with a space.
inline std::string quoted(const std::filesystem::path &path) {
  return "'" + path.string() + "'";
}

/// Runs `script` with `arguments`, and then writes the file `done`. Does nothing if that is newer
/// than the script, `more` sources, the exporters with their data, and the packages of .venv. Paths
/// of sources are relative to the repository. Tests run as parallel processes: one runs the script,
/// the others wait. Throws if the script fails. Whichever case comes first, the models are those of
/// the machine: the script runs without the setting of LibTorch in CGC_TEST_VARIANT.
inline void makeOnce(const std::filesystem::path &done, const std::string &script,
                     const std::string &arguments, const std::vector<std::string> &more = {}) {
  namespace fs = std::filesystem;
  std::vector<fs::path> sources = {sourceDir() / script, sourceDir() / ".venv/cgc-stamp",
                                   sourceDir() / "scripts/export_training_step.py"};
  for (const std::string &path : more)
    sources.push_back(sourceDir() / path);
  for (const fs::directory_entry &file : fs::directory_iterator(sourceDir() / "scripts"))
    if (file.path().filename().string().find("openclip") != std::string::npos)
      sources.push_back(file.path());
  for (const fs::directory_entry &file : fs::directory_iterator(sourceDir() / "tests/data"))
    if (file.path().extension() == ".json")
      sources.push_back(file.path());

  fs::create_directories(done.parent_path());
  const std::string lockFile = done.string() + ".lock";
  const int lock = open(lockFile.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  if (lock < 0 || flock(lock, LOCK_EX) != 0)
    throw std::runtime_error("cannot lock " + lockFile);
  const bool fresh = fs::exists(done) && std::ranges::all_of(sources, [&](const fs::path &source) {
                       return fs::last_write_time(source) <= fs::last_write_time(done);
                     });
  std::string variable = "CGC_TEST_VARIANT";
  if (const char *variant = std::getenv(variable.c_str()))
    variable = std::string(variant).substr(0, std::string_view(variant).find('='));
  const std::string command =
      "env -u " + variable + " " + quoted(sourceDir() / ".venv/bin/python") + " " +
      quoted(sourceDir() / script) + " " + arguments + " >&2 && touch " + quoted(done);
  const int status = fresh ? 0 : std::system(command.c_str());
  close(lock);
  if (status != 0)
    throw std::runtime_error("failed: " + command);
}

} // namespace cgc::test
