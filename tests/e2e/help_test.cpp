// Tests of the command line: help, version, usage errors, exit statuses, and the examples in the
// help.
#include "passes/pipeline.h"
#include "tests/paths.h"
#include "tool.h"

#include <regex>
#include <sstream>

namespace cgc::e2e {
namespace {

class Help : public ToolTest {};
class HelpOfVerb : public ToolTest, public testing::WithParamInterface<const char *> {};

TEST_F(Help, WithoutArgumentsGoesToStderr) {
  expectError(cgc({}), 2, {"compile", "inspect", "Examples:", "Exit status:"});
}

TEST_F(Help, NamesEveryVerb) {
  const Outcome outcome = cgc({"--help"});
  EXPECT_EQ(outcome.status, 0);
  for (const char *verb : {"compile", "run", "inspect", "compare", "bench", "profile", "memory",
                           "doctor", "tune", "opt", "diff"})
    EXPECT_NE(outcome.out.find(verb), std::string::npos) << verb;
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Help, VersionNamesWhatItWasBuiltWith) {
  const Outcome outcome = cgc({"--version"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(std::regex_search(outcome.out,
                                std::regex(R"(^cgc \d+\.\d+\.\d+.*LLVM 19\..*CUDA runtime 13\.)")))
      << outcome.out;
}

TEST_F(Help, WrongUsageExitsWith2) {
  expectError(cgc({"frobnicate"}), 2, {"error", "--help"});
  expectError(cgc({"inspect", "--frobnicate", "x"}), 2, {"--frobnicate", "cgc inspect --help"});
  writeFile(folder / "model.pt", "not an exported program");
  expectError(cgc({"compile", "model.pt", "-o", "x"}), 2, {"--input is required"});
  fs::remove(folder / "model.pt");
  expectError(cgc({"compile", "missing.pt2", "-o", "x"}), 3, {"'missing.pt2' does not exist"});
  expectError(cgc({"run", "p.cgplan", "--executor", "magic"}), 2, {"--executor", "graph"});
  expectError(cgc({"compile", "m.pt", "-o", "o", "--imput", "x=f32[1]"}), 2,
              {"no option '--imput'; did you mean '--input'?", "cgc compile --help"});
  expectError(cgc({"compile", "m.pt", "-o", "o", "--input", "x=f32[1]", "--target", "tpu"}), 2,
              {"--target", "cuda"});
  expectError(cgc({"compile", "m.pt", "-o", "o", "--input", "x=f32[1]", "-O2"}), 2, {"-O"});
  expectError(cgc({"compile", "m.pt", "-o", "o", "--input", "x=f32[1]", "--arch", "sm_70"}), 2,
              {"--arch", "sm_80"});
  expectError(cgc({"compile", "m.pt", "-o", "o", "--input", "x=f32[1]", "--batch", "0"}), 2,
              {"--batch"});
  EXPECT_TRUE(files().empty());
}

TEST_F(Help, ListsHaveNoEmptyValues) {
  for (const char *list : {"1,", ",1", "1,,2", "", "1,x", "1,0", "1 ,2", "99999999999"}) {
    const std::string got = "got '" + std::string(list) + "'";
    expectError(cgc({"compile", "m.pt", "-o", "o", "--input", "x=f32[1]", "--batch", list}), 2,
                {"--batch: expected integers from 1 to", got});
    expectError(cgc({"bench", "p.cgplan", "--batch", list}), 2, {"--batch", got});
    expectError(cgc({"profile", "p.cgplan", "--batch", list}), 2, {"--batch", got});
  }
  expectError(cgc({"compile", "m.pt", "-o", "o", "--input", "x=f32[1]", "--entry", "f,"}), 2,
              {"--entry: expected names with commas between them, got 'f,'"});
  expectError(cgc({"opt", "-", "--print-after", ",cse"}), 2, {"--print-after", "got ',cse'"});
  // Options that are not lists reject bad values, too.
  expectError(cgc({"run", "p.cgplan", "--batch", "0"}), 2, {"--batch"});
  expectError(cgc({"opt", "-", "--pass-limit", "-1"}), 2, {"--pass-limit", "-1"});
  expectError(cgc({"opt", "-", "--dump-dir", ""}), 2, {"--dump-dir", "empty"});
  EXPECT_TRUE(files().empty());
}

TEST_F(Help, AnOptionIsGivenOnce) {
  expectError(cgc({"run", "p.cgplan", "--output", "a", "--output", "b"}), 2,
              {"error: --output is given twice; give it once; see cgc run --help"});
  expectError(cgc({"compile", "m.pt", "-o", "a", "--output", "b", "--input", "x=f32[1]"}), 2,
              {"-o,--output is given twice"});
  expectError(cgc({"compile", "m.pt", "-o", "a", "-O0", "-O1", "-O1", "--input", "x=f32[1]"}), 2,
              {"-O is given 3 times"});
  expectError(cgc({"bench", "p.cgplan", "--samples", "30", "--samples", "30"}), 2,
              {"--samples is given twice"});
}

TEST_F(Help, AListHasNoValueTwice) {
  // The error comes before any file is opened: the files do not exist.
  for (const char *list : {"1,1", "2,1,2", "4,04"}) {
    expectError(cgc({"compile", "m.pt", "-o", "o", "--input", "x=f32[1]", "--batch", list}), 2,
                {"--batch: ", "twice", "give it once"});
    expectError(cgc({"bench", "p.cgplan", "--batch", list}), 2, {"--batch: ", "twice"});
    expectError(cgc({"profile", "p.cgplan", "--batch", list}), 2, {"--batch: ", "twice"});
  }
  expectError(cgc({"bench", "p.cgplan", "--batch", "8", "--batch", "8"}), 2,
              {"--batch: 8 is given twice"});
  for (const std::vector<std::string> &entries :
       {std::vector<std::string>{"--entry", "f,f"}, {"--entry", "f", "--entry", "f"}}) {
    const auto refuses = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), entries.begin(), entries.end());
      expectError(cgc(arguments), 2, {"--entry: f is given twice; give it once"});
    };
    refuses({"compile", "m.pt", "-o", "o", "--input", "x=f32[1]"});
    refuses({"compare", "p.cgplan", "m.pt"});
    refuses({"bench", "p.cgplan"});
    refuses({"profile", "p.cgplan"});
  }
}

TEST_F(Help, UnknownVerbsAreNamedWithTheNearMiss) {
  expectError(cgc({"frobnicate"}), 2, {"no verb 'frobnicate'", "compile, run, inspect"});
  expectError(cgc({"compil", "model.pt"}), 2, {"no verb 'compil'; did you mean 'compile'?"});
}

TEST_F(Help, UsageErrorsAreJsonToo) {
  const std::vector<std::vector<std::string>> commands = {
      {"frobnicate", "--json"},
      {"compile", "--json"},
      {"run", "p.cgplan", "--executor", "magic", "--json"},
      {"inspect", "--json", "--frobnicate", "x"},
      {"compare", "--json", "p.cgplan"},
      {"inspect", "x", "--json", "--dot", "-"}};
  for (const auto &command : commands) {
    const Outcome outcome = cgc(command);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    const auto json = parseJson(outcome, "error");
    EXPECT_EQ(json["code"], "usage");
    EXPECT_NE(outcome.err.find(json["message"].get<std::string>()), std::string::npos);
  }
}

TEST_F(Help, AnOutputNeedsAName) {
  expectError(cgc({"compile", "m.pt", "-o", "", "--input", "x=f32[1]"}), 2, {"--output", "empty"});
  expectError(cgc({"run", "p.cgplan", "--output", ""}), 2, {"--output", "empty"});
  expectError(cgc({"inspect", "p.cgplan", "--dot", ""}), 2, {"--dot", "empty"});
  expectError(cgc({"inspect", "p.cgplan", "--svg", ""}), 2, {"--svg", "empty"});
  expectError(cgc({"opt", "-", "--passes", "cse", "-o", ""}), 2, {"--output", "empty"});
}

TEST_P(HelpOfVerb, EndsInExamples) {
  const Outcome outcome = cgc({GetParam(), "--help"});
  EXPECT_EQ(outcome.status, 0);
  const size_t examples = outcome.out.find("Examples:\n");
  ASSERT_NE(examples, std::string::npos) << outcome.out;
  // Only commands follow.
  std::istringstream lines(outcome.out.substr(examples + 10));
  size_t commands = 0;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) {
      EXPECT_TRUE(line.starts_with("  cgc ")) << line;
      ++commands;
    }
  EXPECT_GE(commands, 2u);
  EXPECT_NE(outcome.out.find("--quiet"), std::string::npos);
  EXPECT_NE(outcome.out.find("--json"), std::string::npos);
}

TEST_F(Help, OptListsTheDefaultPasses) {
  const std::string help = cgc({"opt", "--help"}).out;
  size_t at = 0;
  for (const auto &table :
       {passes::inferenceTable(), passes::selectionTable(), passes::trainingTable()})
    for (const passes::DefaultPass &row : table) {
      at = help.find("\n  " + row.pass.str() + " ", at);
      ASSERT_NE(at, std::string::npos) << row.pass.str();
      const size_t end = help.find('\n', at + 1);
      EXPECT_NE(help.substr(at, end - at).find(row.reason.str()), std::string::npos)
          << row.pass.str();
      at = end;
    }
}

/// The examples of a verb, with the sizes of the tiny model in place of those of ViT-B-32.
/// plugin_test.cpp covers the examples with a plug-in.
std::vector<std::string> exampleCommands(std::string help) {
  help = std::regex_replace(help, std::regex(R"(1,3,224,224)"), "1,3,32,32");
  help = std::regex_replace(help, std::regex(R"(\[1,77\])"), "[1,16]");
  std::vector<std::string> commands;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  cgc ") && line.find("Usage") == std::string::npos &&
        line.find("--pass-plugin") == std::string::npos)
      commands.push_back(line.substr(6));
  return commands;
}

TEST_P(HelpOfVerb, ExamplesWork) {
  // Makes the files that the examples name.
  makePlan();
  fs::rename(folder / "plan.cgplan", folder / "model.cgplan");
  fs::copy(models() / "tiny_fp32.pt", folder / "model.pt");
  fs::copy(exportedModels() / "clip.pt2", folder / "model.pt2");
  fs::copy(trainingModels() / "mlp.pt", folder / "step.pt");
  writeNpy(folder / "image.npy", "<f4", {1, 3, 32, 32}, std::vector<float>(3 * 32 * 32, 0.5f));
  ASSERT_EQ(cgc(compileTiny("model.pt", "dumped.cgplan",
                            {"--dump-dir", "dump", "--entry", "encode_text"}))
                .status,
            0);
  for (const auto &entry : fs::directory_iterator(folder / "dump"))
    if (entry.path().filename().string().find("specialize") != std::string::npos &&
        entry.path().extension() == ".cgir")
      fs::copy_file(entry.path(), folder / "model.cgir", fs::copy_options::overwrite_existing);
  ASSERT_TRUE(fs::exists(folder / "model.cgir"));

  const Outcome forCuda = cgc({"compile", "model.pt", "-o", "cuda.cgplan", "--target", "cuda",
                               "--input", "image=f32[1,3,32,32]", "--input", "text=i64[1,16]"});
  ASSERT_EQ(forCuda.status, 0) << forCuda.err;

  const auto commands = exampleCommands(cgc({GetParam(), "--help"}).out);
  ASSERT_GE(commands.size(), 2u);
  for (std::string command : commands) {
    // The reference executor runs plans for cuda, without a GPU.
    if (command.find("--executor reference") != std::string::npos)
      command = std::regex_replace(command, std::regex("model.cgplan"), "cuda.cgplan");
    const std::string line = test::buildDir().string() + "/bin/cgc " + command;
    // Runs in a shell, as if a user had pasted it.
    const Outcome outcome = runProgram({"bash", "-c", line}, folder);
    EXPECT_EQ(outcome.status, 0) << command << "\n" << outcome.err;
  }
}

// tune needs a plan for a GPU: tune_test.cpp runs it.
INSTANTIATE_TEST_SUITE_P(Verbs, HelpOfVerb,
                         testing::Values("compile", "run", "inspect", "compare", "bench", "profile",
                                         "doctor", "opt", "diff"),
                         [](const auto &info) { return std::string(info.param); });

TEST_F(Help, AFullStandardOutputIsAnError) {
  makePlan();
  const Outcome outcome = cgc({"inspect", "plan.cgplan"}, {.standardOutput = "/dev/full"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("standard output"), std::string::npos) << outcome.err;
  const Outcome help = cgc({"--help"}, {.standardOutput = "/dev/full"});
  EXPECT_EQ(help.status, 1);
  EXPECT_NE(help.err.find("standard output"), std::string::npos) << help.err;
}

TEST_F(Help, ABrokenPipeEndsQuietly) {
  makePlan();
  const std::string tool = test::buildDir().string() + "/bin/cgc";
  const Outcome outcome = runProgram(
      {"bash", "-c", tool + " inspect plan.cgplan --json | true; echo ${PIPESTATUS[0]}"}, folder);
  // Killed by SIGPIPE, or done before `true` closed the pipe.
  EXPECT_TRUE(outcome.out == "141\n" || outcome.out == "0\n") << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

} // namespace
} // namespace cgc::e2e
