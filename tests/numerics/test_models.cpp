// Test models: runs the exporters of TorchScript files.
#include "tests/numerics/test_models.h"
#include "tests/paths.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace cgc::test {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = sourceDir();
const fs::path kModels = buildDir() / "test_models";

/// Creates `target` with `command` unless it is newer than `script`. Tests run as parallel
/// processes: one creates the file, the others wait.
void makeOnce(const fs::path &target, const fs::path &script, const std::string &command) {
  fs::create_directories(kModels);
  int lock = open((kModels / "lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  if (lock < 0 || flock(lock, LOCK_EX) != 0)
    throw std::runtime_error("cannot lock " + kModels.string());
  bool fresh = fs::exists(target) && fs::last_write_time(target) >= fs::last_write_time(script);
  std::string line =
      (kSource / ".venv/bin/python").string() + " " + script.string() + " " + command;
  int status = fresh ? 0 : std::system(line.c_str());
  close(lock);
  if (status != 0)
    throw std::runtime_error("failed: " + line);
}

} // namespace

std::string smallModel(const std::string &name) {
  fs::path stamp = kModels / "small.stamp";
  makeOnce(stamp, kSource / "tests/numerics/small_models.py",
           kModels.string() + " && touch " + stamp.string());
  return (kModels / (name + ".pt")).string();
}

std::string coreOps(const std::string &name) {
  makeOnce(kModels / "core_ops.txt", kSource / "tests/numerics/core_ops.py", kModels.string());
  return (kModels / name).string();
}

std::string trainingModel(const std::string &name) {
  fs::path stamp = kModels / "training.stamp";
  makeOnce(stamp, kSource / "tests/numerics/training_models.py",
           kModels.string() + " && touch " + stamp.string());
  return (kModels / (name + ".pt")).string();
}

std::string generatedModules(int count, int seed) {
  const fs::path folder =
      kModels / ("generated_" + std::to_string(count) + "_" + std::to_string(seed));
  makeOnce(folder / "index.txt", kSource / "tests/numerics/generated_modules.py",
           folder.string() + " " + std::to_string(count) + " " + std::to_string(seed));
  return folder.string();
}

std::string openclipModel(const std::string &config, const std::string &precision) {
  fs::path path = kModels / (config + "_" + precision + ".pt");
  makeOnce(path, kSource / "scripts/export_openclip.py",
           "--config " + (kSource / "tests/data" / (config + ".json")).string() + " --precision " +
               precision + " --out " + path.string() + " >&2");
  return path.string();
}

} // namespace cgc::test
