// Tests of an installed cgc: the libraries that it finds at run time, and programs built against
// its package.
#include "tests/e2e/tool.h"
#include "tests/paths.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

namespace cgc::e2e {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class InstalledCgc : public ToolTest {
protected:
  /// Runs a program without the LibTorch that the environment of the test names.
  Outcome run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"env", "-u", "CGC_LIBTORCH", "-u", "LD_LIBRARY_PATH"});
    return runProgram(arguments, folder);
  }
  const std::string kRunPlan = kExamples / "run_plan" / "run_plan";
};

TEST_F(InstalledCgc, SearchesNoFolderOfTheMachineThatBuiltIt) {
  size_t files = 0;
  for (const char *part : {"bin", "lib"})
    for (const auto &file : fs::directory_iterator(kExamples / "prefix" / part)) {
      if (file.is_symlink() || !file.is_regular_file())
        continue;
      ++files;
      const Outcome outcome = run({"readelf", "-W", "-d", file.path()});
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      std::istringstream lines(outcome.out);
      for (std::string line; std::getline(lines, line);)
        if (line.find("(RPATH)") != std::string::npos ||
            line.find("(RUNPATH)") != std::string::npos) {
          EXPECT_THAT(line.substr(line.find('[') + 1), StartsWith("$ORIGIN")) << file.path();
        }
    }
  // cgc, the runtime, the frontend, the provider, the references, the backend of Triton.
  EXPECT_EQ(files, 6u);
}

TEST_F(InstalledCgc, SaysWhichLibraryIsMissingAndHowItIsFound) {
  makePlan({"--entry", "encode_text"});
  const std::vector<std::string> command = {kInstalledTool, "run", "plan.cgplan", "--input",
                                            "text=random:0"};
  const std::string provider = kExamples / "prefix" / "lib" / "libcgc_aten.so";
  expectError(run(command), 6,
              {provider, "libc10.so: cannot open shared object file", "LibTorch 2.11.0",
               "LD_LIBRARY_PATH", "CGC_LIBTORCH"});
  expectError(run({kInstalledTool, "compile", models() / "tiny_fp32.pt", "-o", "x.cgplan",
                   "--input", "text=i64[1,16]"}),
              6, {"TorchScript frontend", "libc10.so", "CGC_LIBTORCH"});

  const auto with = [&](const std::string &setting) {
    std::vector<std::string> arguments = {"env", setting};
    arguments.insert(arguments.end(), command.begin(), command.end());
    return run(arguments);
  };
  for (const std::string &setting :
       {kLibTorchSetting, kLibTorchSetting + "/lib",
        "LD_LIBRARY_PATH=" + kLibTorchSetting.substr(kLibTorchSetting.find('=') + 1) + "/lib"}) {
    const Outcome outcome = with(setting);
    EXPECT_EQ(outcome.status, 0) << setting << ": " << outcome.err;
  }
  expectError(with("CGC_LIBTORCH=/nonexistent"), 6,
              {"CGC_LIBTORCH is '/nonexistent'", "libc10.so", "set it to the folder"});
}

TEST_F(InstalledCgc, RunsAPlanForCudaWithoutGpuAndLibTorch) {
  std::vector<std::string> arguments =
      compileTiny(models() / "tiny_fp32.pt", "cuda.cgplan", {"--entry", "encode_text"});
  *std::ranges::find(arguments, "cpu") = "cuda";
  ASSERT_EQ(cgc(arguments).status, 0);
  const Outcome outcome = run({kInstalledTool, "run", "cuda.cgplan", "--input", "text=random:0",
                               "--executor", "reference"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(InstalledCgc, RunsAPlanFromCpp) {
  makePlan({"--batch", "2"});
  const Outcome listed = run({kRunPlan, "plan.cgplan"});
  EXPECT_EQ(listed.status, 0) << listed.err;
  for (const char *line :
       {"encode_image: image f32[2,3,32,32] -> ", "encode_text: text i64[2,16] -> "})
    EXPECT_THAT(listed.out, HasSubstr(line));

  // Both get the same tokens, which are zeros without a file.
  const std::vector<int64_t> zeros(2 * 16, 0);
  std::vector<int64_t> tokens = zeros;
  tokens[3] = 5;
  const auto expectSame = [&](const std::vector<int64_t> &values,
                              std::vector<std::string> arguments) {
    writeNpy(folder / "text.npy", "<i8", {2, 16}, values);
    ASSERT_EQ(cgc({"run", "plan.cgplan", "--entry", "encode_text", "--input", "text=@text.npy",
                   "--output", "y.npy"})
                  .status,
              0);
    arguments.insert(arguments.begin(),
                     {"env", kLibTorchSetting, kRunPlan, "plan.cgplan", "encode_text"});
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::string expected = " f32[2,32]:";
    const std::vector<float> y = npyFloats(folder / "y.npy");
    for (size_t i = 0; i < 4; ++i) {
      char text[32];
      std::snprintf(text, sizeof(text), " %.9g", y.at(i));
      expected += text;
    }
    EXPECT_THAT(outcome.out, EndsWith(expected + "\n"));
  };
  expectSame(zeros, {});
  writeFile(folder / "text.bin", std::string_view(reinterpret_cast<const char *>(tokens.data()),
                                                  tokens.size() * sizeof(int64_t)));
  expectSame(tokens, {"text.bin"});
}

TEST_F(InstalledCgc, AProgramInCppSaysWhatIsWrong) {
  makePlan({"--entry", "encode_text"});
  writeFile(folder / "short.bin", "abc");
  expectError(run({kRunPlan}), 2, {"usage: run_plan PLAN"});
  expectError(run({kRunPlan, "none.cgplan"}), 1, {"run_plan: invalid_file", "none.cgplan"});
  expectError(run({"env", kLibTorchSetting, kRunPlan, "plan.cgplan", "forward"}), 1,
              {"has no entry 'forward'"});
  expectError(run({kRunPlan, "plan.cgplan", "encode_text"}), 1,
              {"run_plan: device", "libcgc_aten.so", "CGC_LIBTORCH"});
  const auto withLibTorch = [&](std::vector<std::string> files) {
    files.insert(files.begin(), {"env", kLibTorchSetting, kRunPlan, "plan.cgplan", "encode_text"});
    return run(files);
  };
  expectError(withLibTorch({"none.bin"}), 1, {"cannot read 'none.bin'", "No such file"});
  expectError(withLibTorch({"short.bin"}), 1, {"'short.bin' has 3 bytes, and the input takes 128"});
  expectError(withLibTorch({"a.bin", "b.bin"}), 1, {"fewer inputs than there are files"});
}

TEST_F(InstalledCgc, ServesAnyBatchFromThreadsOfCppAndC) {
  makePlan({"--batch", "1,8,32", "--entry", "encode_text,forward"});
  for (const std::string name : {"serve_cpp", "serve_c"}) {
    const std::string program = kExamples / name / name;
    const auto withLibTorch = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), {"env", kLibTorchSetting, program});
      return run(arguments);
    };
    const Outcome served = withLibTorch({"plan.cgplan", "encode_text", "8", "1"});
    EXPECT_EQ(served.status, 0) << served.err;
    EXPECT_THAT(served.out, HasSubstr(" 0 failures"));
    EXPECT_EQ(served.err, "");
    expectError(withLibTorch({}), 2, {"usage: " + name + " PLAN ENTRY"});
    expectError(withLibTorch({"none.cgplan", "encode_text"}), 1, {name + ": ", "none.cgplan"});
    for (const std::string entry : {"forward", "encode"})
      expectError(withLibTorch({"plan.cgplan", entry}), 2, {"has no tower '" + entry + "'"});
  }
}

TEST_F(InstalledCgc, ServesFromTheDebianPackageAndByPkgConfig) {
  makePlan({"--batch", "1,8", "--entry", "encode_text"});
  for (const auto &[name, prefix] :
       {std::pair("serve_c_of_deb", "deb/usr"), {"serve_c_of_pkg_config", "prefix"}}) {
    const std::string program = kExamples / name / "serve_c";
    const Outcome linked = run({"ldd", program});
    EXPECT_THAT(linked.out,
                HasSubstr(" => " + (kExamples / prefix / "lib" / "libcgc_runtime.so").string()));
    const Outcome served =
        run({"env", kLibTorchSetting, program, "plan.cgplan", "encode_text", "2", "1"});
    EXPECT_EQ(served.status, 0) << served.err;
    EXPECT_THAT(served.out, HasSubstr(" 0 failures"));
  }
}

/// The code of the only block of this language in the README.
std::string readmeBlock(const std::string &language) {
  const std::string text = readFile(test::sourceDir() / "README.md");
  const std::string open = "```" + language + "\n";
  const size_t begin = text.find(open) + open.size();
  EXPECT_NE(begin, std::string::npos + open.size()) << language;
  EXPECT_EQ(text.find(open, begin), std::string::npos) << "a second block of " << language;
  return text.substr(begin, text.find("```", begin) - begin);
}

TEST(Readme, ShowsLinesOfTheExampleThatRunsPlans) {
  const fs::path example = test::sourceDir() / "examples" / "run_plan";
  EXPECT_THAT(readFile(example / "main.cpp"), HasSubstr(readmeBlock("cpp")));
  EXPECT_THAT(readFile(example / "CMakeLists.txt"), HasSubstr(readmeBlock("cmake")));
}

} // namespace
} // namespace cgc::e2e
