// Tests of plug-ins: the example of examples/plugin, built against an installed cgc, and errors.
#include "tests/e2e/tool.h"
#include "tests/paths.h"

#include <gmock/gmock.h>

namespace cgc::e2e {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

constexpr const char *kRecord = "libexample_ops.so.example.quick_gelu";

/// The path of a library of tests/plugin_libraries.
std::string testLibrary(const std::string &name) {
  return test::buildDir() / "lib" / ("libcgc_test_" + name + ".so");
}

const std::string kPasses = kExamples / "plugin" / "libexample_passes.so";
const std::string kOps = kExamples / "plugin" / "libexample_ops.so";

/// The installed cgc with the example, both made by the ctest fixture examples.
class InstalledPlugin : public ToolTest {
protected:
  Outcome installed(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"env", kLibTorchSetting, kInstalledTool});
    return runProgram(arguments, folder);
  }

  Outcome compile(std::vector<std::string> more) {
    return installed(compileTiny(models() / "tiny_quickgelu.pt", "plan.cgplan", std::move(more)));
  }
};

std::map<std::string, size_t> recordsOf(const Outcome &outcome, const std::string &entry) {
  const auto json = parseJson(outcome, "compile");
  for (const auto &e : json["entries"])
    if (e["name"] == entry)
      return e["buckets"][0]["records_by_kind"];
  return {};
}

TEST_F(InstalledPlugin, ReplacesQuickGeluAndEveryAttention) {
  const Outcome plain = compile({"--json"});
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_THAT(recordsOf(plain, "encode_image"), Not(Contains(Key(kRecord))));
  EXPECT_TRUE(parseJson(plain, "compile")["op_libraries"].empty());

  const Outcome with = compile({"--pass-plugin", kPasses, "--op-library", kOps, "--json"});
  ASSERT_EQ(with.status, 0) << with.err;
  EXPECT_EQ(parseJson(with, "compile")["op_libraries"][0]["name"], "libexample_ops.so");
  for (const char *entry : {"encode_image", "encode_text"}) {
    const auto records = recordsOf(with, entry), before = recordsOf(plain, entry);
    EXPECT_THAT(before, Contains(Key("aten::scaled_dot_product_attention")));
    EXPECT_THAT(records, Not(Contains(Key("aten::scaled_dot_product_attention"))));
    EXPECT_THAT(before, Contains(Key("aten::sigmoid.out")));
    EXPECT_THAT(records, Not(Contains(Key("aten::sigmoid.out"))));
    EXPECT_EQ(records.at(kRecord), 2u); // One per layer.
  }

  const Outcome compared =
      installed({"compare", "plan.cgplan", models() / "tiny_quickgelu.pt", "--op-library", kOps});
  EXPECT_EQ(compared.status, 0) << compared.out << compared.err;
  EXPECT_THAT(installed({"inspect", "plan.cgplan"}).out,
              HasSubstr("    op library libexample_ops.so, xxhash64 "));
}

TEST_F(InstalledPlugin, CompilesForCudaWithoutAGpu) {
  const Outcome outcome =
      installed({"compile", models() / "tiny_quickgelu.pt", "-o", "plan.cgplan", "--input",
                 "text=i64[1,16]", "--pass-plugin", kPasses, "--op-library", kOps, "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(recordsOf(outcome, "encode_text").at(kRecord), 2u);

  // Tuning runs the plan, so both ways to tune need the library and say so.
  const std::string plan = readFile(folder / "plan.cgplan");
  expectError(installed({"tune", "plan.cgplan"}), 2,
              {"op library 'libexample_ops.so'", "--op-library"});
  writeFile(folder / "libexample_ops.so", readFile(kOps) + "more");
  expectError(installed({"tune", "plan.cgplan", "--op-library", "libexample_ops.so"}), 2,
              {"'libexample_ops.so', given with --op-library, has xxhash64"});
  if (!hasGpu())
    expectError(installed({"tune", "plan.cgplan", "--op-library", kOps}), 6, {"NVIDIA driver"});
  EXPECT_EQ(readFile(folder / "plan.cgplan"), plan);
}

TEST_F(InstalledPlugin, RewritesIrText) {
  writeFile(folder / "in.cgir", R"(graph @g(%x: f32[2,3]) {
  %0 = aten.mul(%x, 1.702) : f32[2,3]
  %1 = aten.sigmoid(%0) : f32[2,3]
  %2 = aten.mul(%x, %1) : f32[2,3]
  output %2
}
)");
  const Outcome outcome =
      installed({"opt", "in.cgir", "--passes", "op-substitution", "--pass-plugin", kPasses});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("cgc.library_op([%x]) {op=\"example.quick_gelu\"}"));
}

TEST_F(InstalledPlugin, NeedsItsOpLibraryToCompileAndToRun) {
  expectError(compile({"--pass-plugin", kPasses}), 4,
              {"no op library has op 'example.quick_gelu'", "--op-library"});
  EXPECT_THAT(files(), ElementsAre());
  ASSERT_EQ(compile({"--pass-plugin", kPasses, "--op-library", kOps}).status, 0);

  const std::vector<std::string> run = {"run",         "plan.cgplan", "--entry",
                                        "encode_text", "--input",     "text=random:0"};
  expectError(installed(run), 2, {"op library 'libexample_ops.so'", "--op-library"});

  fs::copy_file(kOps, folder / "libexample_ops.so");
  std::vector<std::string> with = run;
  with.insert(with.end(), {"--op-library", "libexample_ops.so"});
  EXPECT_EQ(installed(with).status, 0);
  writeFile(folder / "libexample_ops.so", readFile(kOps) + "more");
  expectError(installed(with), 2,
              {"'libexample_ops.so', given with --op-library, has xxhash64",
               "the plan was compiled with op library 'libexample_ops.so'"});
}

TEST_F(InstalledPlugin, TheTwoKindsOfLibraryAreToldApart) {
  expectError(compile({"--pass-plugin", kOps}), 3,
              {"is no pass plug-in", "it is an op library: name it with --op-library"});
  expectError(compile({"--op-library", kPasses}), 3,
              {"is no op library", "it is a pass plug-in: name it with --pass-plugin"});
}

class PluginTest : public ToolTest {
protected:
  Outcome compileWith(const std::string &library) {
    return cgc(compileTiny(models() / "tiny_quickgelu.pt", "plan.cgplan",
                           {"--pass-plugin", testLibrary(library)}));
  }
  /// Runs the plug-in's passes on a graph.
  Outcome opt(const std::string &passes, std::vector<std::string> more = {}) {
    writeFile(folder / "in.cgir",
              "graph @g(%x: f32[2]) {\n  %0 = aten.exp(%x) : f32[2]\n  output %0\n}\n");
    more.insert(more.begin(), {"opt", "in.cgir", "--passes", passes, "-o", "out.cgir",
                               "--pass-plugin", testLibrary("misbehaving")});
    return cgc(std::move(more));
  }
};

TEST_F(PluginTest, AnotherAbiIsNamed) {
  expectError(compileWith("other_abi"), 1,
              {"libcgc_test_other_abi.so' has ABI 77, and this cgc takes ABI 1"});
  expectError(compileWith("other_build"), 1,
              {"libcgc_test_other_build.so' was built against a cgc with other headers"});
  expectError(cgc(compileTiny(models() / "tiny_quickgelu.pt", "plan.cgplan",
                              {"--op-library", testLibrary("other_abi")})),
              1, {"libcgc_test_other_abi.so' has ABI 77, and this cgc takes ABI 1"});
  EXPECT_THAT(files(), ElementsAre());
}

TEST_F(PluginTest, WhatIsNoPluginIsNamed) {
  expectError(compileWith("no_plugin"), 3,
              {"libcgc_test_no_plugin.so' is no pass plug-in: it does not define cgcPassPlugin"});
  expectError(compileWith("missing"), 3, {"libcgc_test_missing.so"});
  writeFile(folder / "text.so", "text");
  expectError(
      cgc(compileTiny(models() / "tiny_quickgelu.pt", "plan.cgplan", {"--pass-plugin", "text.so"})),
      3, {"cannot load pass plug-in 'text.so'"});
  EXPECT_THAT(files(), ElementsAre("text.so"));
}

TEST_F(PluginTest, APassThatThrowsOrBreaksTheIrIsNamedAndNothingIsWritten) {
  expectError(opt("throwing"), 1, {"pass 'throwing': an exception: the pass gave up"});
  expectError(opt("breaking"), 1, {"pass 'breaking' broke the IR, which is a bug of that pass"});
  expectError(opt("throwin"), 2, {"there is no pass 'throwin'; did you mean 'throwing'?"});
  EXPECT_THAT(files(), ElementsAre("in.cgir"));
}

TEST_F(PluginTest, WhatTextDoesNotHoldIsSaidAndNothingIsWritten) {
  expectError(opt("deep", {"--verify-roundtrip"}), 1,
              {"cannot be parsed, which is a bug of cgc", "lists are nested more than 64 deep"});
  EXPECT_THAT(files(), ElementsAre("in.cgir"));
}

TEST_F(PluginTest, AReproducerNamesThePluginsThatItNeedsAgain) {
  writeFile(folder / "in.cgir",
            "graph @g(%x: f32[2]) {\n  %0 = aten.exp(%x) : f32[2]\n  output %0\n}\n");
  fs::copy_file(testLibrary("misbehaving"), folder / "lib acme.so");
  expectError(cgc({"opt", "in.cgir", "--passes", "throwing", "--pass-plugin", "lib acme.so",
                   "--crash-reproducer", "crash.cgir"}),
              1, {"pass 'throwing'"});
  const std::string recorded = folder / "lib acme.so";
  EXPECT_THAT(readFile(folder / "crash.cgir"), HasSubstr(recorded + "\n"));
  // A text file that names a library does not cause cgc to load it.
  expectError(cgc({"opt", "--run-reproducer", "crash.cgir"}), 2,
              {"'crash.cgir' was left by a run with plug-ins",
               "cgc opt --run-reproducer crash.cgir --pass-plugin '" + recorded + "'"});
  const Outcome again =
      cgc({"opt", "--run-reproducer", "crash.cgir", "--pass-plugin", "lib acme.so"});
  expectError(again, 1, {"pass 'throwing': an exception: the pass gave up"});
  EXPECT_THAT(again.err, Not(HasSubstr("another build")));
  // A rebuilt library in another folder is accepted.
  fs::create_directories(folder / "other");
  writeFile(folder / "other" / "lib acme.so", readFile(testLibrary("misbehaving")) + "more");
  expectError(cgc({"opt", "--run-reproducer", "crash.cgir", "--pass-plugin", "other/lib acme.so"}),
              1, {"'other/lib acme.so' is another build than", "pass 'throwing'"});
  EXPECT_THAT(files(), ElementsAre("crash.cgir", "in.cgir", "lib acme.so", "other"));
}

TEST_F(PluginTest, OneThatThrowsWhileItRegistersIsNamed) {
  expectError(compileWith("throws"), 1,
              {"pass plug-in 'misbehaving' (", "threw an exception: nothing to register"});
  EXPECT_THAT(files(), ElementsAre());
}

TEST_F(PluginTest, ASubstitutionOfAnotherTypeIsRefusedWithBoth) {
  expectError(compileWith("other_op_type"), 1,
              {"substitution 'sigmoid-to-sum' at %",
               "gives f32[], and what it replaces gives f32[1,5,256]; make it give the same"});
  expectError(compileWith("other_module_type"), 1,
              {"substitution 'gelu-to-sum' gives f32[], and what it replaces gives f32[1,5,256]"});
  EXPECT_THAT(files(), ElementsAre());
}

TEST_F(PluginTest, ATextThatCannotBeParsedIsShown) {
  expectError(compileWith("bad_text"), 1,
              {"the pattern of substitution 'bad-text'", "aten.exq", "did you mean 'aten.eq'"});
  EXPECT_THAT(files(), ElementsAre());
}

} // namespace
} // namespace cgc::e2e
