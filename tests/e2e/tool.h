// Tool: starts the built cgc and other programs, and hands the tests their models and scratch
// folders.
#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace cgc::e2e {

namespace fs = std::filesystem;

/// Where the ctest fixture examples installs cgc (`prefix`) and builds each of examples/.
const fs::path kExamples = fs::path(CGC_BINARY_DIR) / "examples";
const std::string kInstalledTool = kExamples / "prefix" / "bin" / "cgc";
/// For `env`: an installed cgc does not know where LibTorch is.
const std::string kLibTorchSetting = std::string("CGC_LIBTORCH=") + CGC_TORCH_DIR;

struct Outcome {
  int status = -1; ///< The exit status, or 128 + the signal, as a shell shows it.
  std::string out, err;
  long peakKilobytes = 0;
  double cpuSeconds = 0;
};

struct How {
  std::string input;            ///< For its standard input.
  int signal = SIGINT;          ///< Sent if killOnPhase is not empty.
  std::string killOnPhase;      ///< As soon as this text is in its standard error ...
  bool killOnTemporary = false; ///< ... and a temporary file is in its folder.
  long fileSizeLimit = -1;      ///< RLIMIT_FSIZE in bytes.
  std::string standardOutput;   ///< A path to open as its standard output instead of collecting it.
};

/// Runs a program in the folder `in` and waits for it.
Outcome runProgram(const std::vector<std::string> &command, const fs::path &in,
                   const How &how = {});

/// Where the models of make_models.py are; made on first use by any test process.
const fs::path &models();
/// Where the models of make_families.py are.
const fs::path &familyModels();
/// Scripted modules, from make_scripted.py.
const fs::path &scriptedModels();
/// ViT-B-32 in fp32 with random weights, exported on first use.
const fs::path &realModel();
/// Whether cgc can use a GPU here.
bool hasGpu();

std::string readFile(const fs::path &path);
void writeFile(const fs::path &path, std::string_view bytes);
/// A float32 or int64 array as an .npy file.
void writeNpy(const fs::path &path, std::string_view dtype, const std::vector<int64_t> &shape,
              std::string_view bytes);
template <class T>
void writeNpy(const fs::path &path, std::string_view dtype, const std::vector<int64_t> &shape,
              const std::vector<T> &values) {
  writeNpy(
      path, dtype, shape,
      std::string_view(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)));
}
/// The header's text of an .npy file.
std::string npyHeader(const fs::path &path);
/// The data of an .npy file as float32.
std::vector<float> npyFloats(const fs::path &path);

/// A test with an empty folder of its own and the path of cgc.
class ToolTest : public testing::Test {
protected:
  void SetUp() override;

  /// Runs cgc in the test's folder.
  Outcome cgc(std::vector<std::string> arguments, const How &how = {});
  /// The names of the files in the test's folder, sorted.
  std::vector<std::string> files() const;
  /// The arguments of `cgc compile` for the tiny model: both inputs, target cpu.
  static std::vector<std::string> compileTiny(const fs::path &model, const std::string &output,
                                              std::vector<std::string> more = {});
  /// Compiles tiny_fp32.pt to plan.cgplan in the test's folder; throws if that fails.
  void makePlan(std::vector<std::string> more = {});

  fs::path folder;
};

/// Exit status, nothing on stdout, and each of `texts` on stderr.
void expectError(const Outcome &outcome, int status, const std::vector<std::string> &texts);
/// Parses stdout as one JSON object of version 1 and this kind; throws if it is none.
nlohmann::json parseJson(const Outcome &outcome, const std::string &kind);

} // namespace cgc::e2e
