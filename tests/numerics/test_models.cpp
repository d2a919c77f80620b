// Test models: runs the exporters of TorchScript files.
#include "tests/numerics/test_models.h"
#include "tests/make_once.h"

#include <filesystem>

namespace cgc::test {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = buildDir() / "test_models";

/// Has the script in tests/numerics write its models to kModels. Returns the path of one.
std::string madeBy(const std::string &script, const std::string &model) {
  makeOnce(kModels / (script + ".done"), "tests/numerics/" + script, quoted(kModels));
  return kModels / model;
}

} // namespace

std::string smallModel(const std::string &name) {
  return madeBy("small_models.py", name + ".pt");
}

std::string coreOps(const std::string &name) {
  return madeBy("core_ops.py", name);
}

std::string trainingModel(const std::string &name) {
  return madeBy("training_models.py", name + ".pt");
}

std::string generatedModules(int count, int seed) {
  const fs::path folder =
      kModels / ("generated_" + std::to_string(count) + "_" + std::to_string(seed));
  makeOnce(folder / "done", "tests/numerics/generated_modules.py",
           quoted(folder) + " " + std::to_string(count) + " " + std::to_string(seed));
  return folder;
}

std::string openclipModel(const std::string &config, const std::string &precision) {
  const fs::path path = kModels / (config + "_" + precision + ".pt");
  makeOnce(path.string() + ".done", "scripts/export_openclip.py",
           "--config " + quoted(sourceDir() / "tests/data" / (config + ".json")) + " --precision " +
               precision + " --out " + quoted(path));
  return path;
}

} // namespace cgc::test
