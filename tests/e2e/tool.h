// Tool: runs the built cgc and other programs, and provides models and scratch folders to the
// tests.
#pragma once

#include "tests/paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace cgc::e2e {

namespace fs = std::filesystem;

/// The repository.
const fs::path kSource = test::sourceDir();
/// The folder in which the ctest fixture `examples` installs cgc (`prefix`) and builds each of
/// examples/.
const fs::path kExamples = test::buildDir() / "examples";
const std::string kInstalledTool = kExamples / "prefix" / "bin" / "cgc";
/// An argument of `env` that sets the path of LibTorch, which an installed cgc does not know.
const std::string kLibTorchSetting = std::string("CGC_LIBTORCH=") + test::torchDir().string();

struct Outcome {
  int status = -1; ///< The exit status, or 128 + the signal, as in a shell.
  std::string out, err;
  long peakKilobytes = 0;
  double cpuSeconds = 0;
};

struct How {
  std::string input;   ///< Text for the standard input.
  int signal = SIGINT; ///< The signal to send; see killOnPhase.
  std::string
      killOnPhase; ///< Sends the signal once this text is in the standard error; empty: never.
  bool killOnTemporary = false; ///< Also waits until the folder holds a temporary file.
  long fileSizeLimit = -1;      ///< RLIMIT_FSIZE in bytes.
  std::string standardOutput;   ///< A path to open as standard output, which is then not collected.
};

/// Runs a program in the folder `in` and waits for it.
Outcome runProgram(const std::vector<std::string> &command, const fs::path &in,
                   const How &how = {});

/// The folder of the models of make_models.py, which the first test process that needs them makes.
const fs::path &models();
/// The folder of the models of make_families.py.
const fs::path &familyModels();
/// The folder of the scripted modules of make_scripted.py.
const fs::path &scriptedModels();
/// The folder of the exported programs of make_exported.py, with inputs and outputs.
const fs::path &exportedModels();
/// The folder of the training steps and data of make_training_models.py.
const fs::path &trainingModels();
/// The path of ViT-B-32 in fp32 with random weights, exported on first use.
const fs::path &realModel();
/// The path of the training step of ViT-B-32 with random weights, exported on first use.
const fs::path &realTrainingStep();
/// The folder for what a test writes. The same case may run at the same time under another setting
/// of LibTorch, for which scripts/run_tests.py sets CGC_TEST_VARIANT.
fs::path outputDir();
/// Whether cgc can use a GPU here.
bool hasGpu();

std::string readFile(const fs::path &path);
void writeFile(const fs::path &path, std::string_view bytes);
/// Writes a float32 or int64 array as an .npy file.
void writeNpy(const fs::path &path, std::string_view dtype, const std::vector<int64_t> &shape,
              std::string_view bytes);
template <class T>
void writeNpy(const fs::path &path, std::string_view dtype, const std::vector<int64_t> &shape,
              const std::vector<T> &values) {
  writeNpy(
      path, dtype, shape,
      std::string_view(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)));
}
/// The text of the header of an .npy file.
std::string npyHeader(const fs::path &path);
/// The data of an .npy file of f32 or f16.
std::vector<float> npyFloats(const fs::path &path);

/// Base class of tests that run cgc in an empty folder of their own.
class ToolTest : public testing::Test {
protected:
  void SetUp() override;

  /// Runs cgc in the test's folder.
  Outcome cgc(std::vector<std::string> arguments, const How &how = {});
  /// The names of the files in the test's folder, sorted.
  std::vector<std::string> files() const;
  /// The arguments of `cgc compile` for the tiny model with both inputs and target cpu.
  static std::vector<std::string> compileTiny(const fs::path &model, const std::string &output,
                                              std::vector<std::string> more = {});
  /// Compiles tiny_fp32.pt to plan.cgplan in the test's folder. Throws on failure.
  void makePlan(std::vector<std::string> more = {});

  fs::path folder;
};

/// Checks the exit status, that stdout is empty, and that stderr contains each of `texts`.
void expectError(const Outcome &outcome, int status, const std::vector<std::string> &texts);
/// Parses stdout as one JSON object of version 1 and of this kind. Throws if it is not one.
nlohmann::json parseJson(const Outcome &outcome, const std::string &kind);

} // namespace cgc::e2e
