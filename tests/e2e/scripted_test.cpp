// Tests of scripted modules: plans of modules from torch.jit.script give the results of LibTorch,
// and everything that cannot be captured is listed. families_test.cpp tests OpenCLIP's modules.
#include "tests/paths.h"
#include "tool.h"

#include <fstream>
#include <tuple>

namespace cgc::e2e {
namespace {

/// The 1-based line of make_scripted.py that ends in `# LINE: tag`.
int lineOf(const std::string &tag) {
  std::ifstream file(test::sourceDir() / "tests/e2e/make_scripted.py");
  std::string line;
  for (int number = 1; std::getline(file, line); ++number)
    if (line.ends_with("# LINE: " + tag))
      return number;
  return 0;
}

class ScriptedModels : public ToolTest {
protected:
  nlohmann::json rowsOf(const std::string &name);
  /// Compiles for batches 1 and 3 and compares with LibTorch.
  void expectAgreement(const std::string &name, const std::vector<std::string> &more) {
    const fs::path model = scriptedModels() / (name + ".pt");
    std::vector<std::string> arguments = {"compile",  model, "-o",      "plan.cgplan",
                                          "--target", "cpu", "--batch", "1,3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome compiled = cgc(arguments);
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    const Outcome compared = cgc({"compare", "plan.cgplan", model, "--json"});
    EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
    EXPECT_TRUE(parseJson(compared, "compare")["passed"]) << compared.out;
  }
};

/// What the plan of all methods of a module for batches of 32 and 64 says of the rows of each.
nlohmann::json ScriptedModels::rowsOf(const std::string &name) {
  const Outcome compiled = cgc({"compile", scriptedModels() / (name + ".pt"), "-o", "plan.cgplan",
                                "--target", "cpu", "--input", "x=f32[32,4]", "--batch", "32,64"});
  EXPECT_EQ(compiled.status, 0) << compiled.err;
  const auto plan = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  nlohmann::json rows;
  for (const auto &entry : plan["entries"])
    rows[entry["name"].get<std::string>()] = entry["rows"];
  return rows;
}

/// The lines of make_scripted.py, of which the first is lines[1].
std::vector<std::string> sourceLines() {
  std::ifstream file(test::sourceDir() / "tests/e2e/make_scripted.py");
  std::vector<std::string> lines(1);
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

/// Both buckets compute the same, but another batch would not.
TEST_F(ScriptedModels, RowsDependOnTheBatchIfItsSizeDecidesAnything) {
  const auto all = rowsOf("BatchUses");
  const std::vector<std::string> lines = sourceLines();
  EXPECT_GE(all.size(), 76u);
  for (const auto &[method, rows] : all.items()) {
    SCOPED_TRACE(method);
    EXPECT_EQ(rows["independent"], false);
    EXPECT_NE(rows["reason"], "");
    // The line of the reason is one of the method, or of the helper that it calls.
    const std::string location = rows["location"];
    const size_t colon = location.find(".py:");
    ASSERT_NE(colon, std::string::npos) << location;
    size_t line = std::stoul(location.substr(colon + 4));
    ASSERT_LT(line, lines.size()) << location;
    while (line > 0 && !lines[line].starts_with("    def "))
      --line;
    const std::string expected = method == "in_helper" ? "scaled" : method;
    EXPECT_TRUE(lines[line].starts_with("    def " + expected + "(")) << location;
  }
}

TEST_F(ScriptedModels, RowsAreIndependentIfTheBatchGivesOnlySizes) {
  const auto all = rowsOf("BatchSizes");
  EXPECT_GE(all.size(), 23u);
  for (const auto &[method, rows] : all.items())
    EXPECT_EQ(rows["independent"], true) << method << ": " << rows;
}

TEST_F(ScriptedModels, OptionalInputsMayBeLeftOut) {
  expectAgreement("OptionalInput", {"--input", "x=f32[1,4]"});
  expectAgreement("OptionalInput", {"--input", "x=f32[1,4]", "--input", "y=f32[1,4]"});
  const Outcome flag = cgc({"compile", scriptedModels() / "OptionalInput.pt", "-o", "p.cgplan",
                            "--input", "x=f32[1,4]", "--input", "negate=bool[1]"});
  EXPECT_EQ(flag.status, 2);
  EXPECT_NE(flag.err.find("it stays at its default, false"), std::string::npos) << flag.err;
}

TEST_F(ScriptedModels, ShapesDecideForEachBucket) {
  expectAgreement("Shapes", {"--input", "x=f32[1,4]"});
  expectAgreement("Shapes", {"--input", "x=f16[1,1,4]"});
  expectAgreement("Shapes", {"--input", "x=i32[1,4]"});
  const Outcome rank = cgc({"compile", scriptedModels() / "Shapes.pt", "-o", "p.cgplan", "--input",
                            "x=f32[1,1,1,4]", "--target", "cpu"});
  EXPECT_EQ(rank.status, 4);
  EXPECT_NE(rank.err.find("AssertionError: no rank 4"), std::string::npos) << rank.err;
}

TEST_F(ScriptedModels, FlagsLoopsAndLists) {
  expectAgreement("Flags", {"--input", "x=f32[1,4]"});
  expectAgreement("Loops", {"--input", "x=f32[1,4]"});
  expectAgreement("Ranges", {"--input", "x=f32[1,4]"});
  expectAgreement("Lists", {"--input", "x=f32[1,4]"});
  expectAgreement("NoGrad", {"--input", "x=f32[1,4]"});
}

TEST_F(ScriptedModels, OpsThatDependOnArguments) {
  expectAgreement("Arguments", {"--input", "x=f32[1,4]"});
}

TEST_F(ScriptedModels, BranchesOfMultiheadAttention) {
  expectAgreement("Attention", {"--input", "x=f32[1,5,8]", "--input", "y=f32[1,3,8]"});
}

TEST_F(ScriptedModels, PartsThatAreOverwritten) {
  expectAgreement("Parts", {"--input", "x=f32[1,4]"});
  expectAgreement("Items", {"--input", "x=f32[1,4]"});
}

// Offenders

TEST_F(ScriptedModels, EachKindOfOffenderIsNamedWithItsLine) {
  const fs::path model = scriptedModels() / "Offenders.pt";
  for (const std::vector<std::string> &shapes :
       {std::vector<std::string>{}, std::vector<std::string>{"--input", "x=f32[4]"}}) {
    std::vector<std::string> arguments = {"inspect", model, "--capturable", "--json"};
    arguments.insert(arguments.end(), shapes.begin(), shapes.end());
    const Outcome outcome = cgc(arguments);
    EXPECT_EQ(outcome.status, 4) << outcome.err;
    const auto json = parseJson(outcome, "capturability");
    EXPECT_EQ(json["shapes"], !shapes.empty());
    for (const auto &method : json["methods"])
      EXPECT_EQ(method["capturable"], method["name"] == "forward") << method;
    for (const auto &[tag, cause, op] :
         std::vector<std::tuple<const char *, const char *, const char *>>{
             {"host-read", "host-read", "item()"},
             {"data-flow", "data-flow", "data-dependent control flow"},
             {"data-flow-loop", "data-flow", "data-dependent control flow"},
             {"data-shape", "data-shape", "aten::nonzero"},
             {"data-shape-mask", "data-shape", "aten.index"},
             {"host-copy", "host-copy", "aten::cpu"},
             {"allocates", "allocates", "aten::resize_"},
             {"random", "random", "aten::poisson"},
             {"random-dropout", "random", "aten.dropout"},
             {"autograd", "autograd", "aten::backward"},
             {"default-stream", "default-stream", "cuda::synchronize"},
             {"mutates-input", "mutates-input", "aten.add_"},
             {"mutates-state", "mutates-state", "aten.add_"},
             {"mutates-state-data", "mutates-state", "aten.mul_"},
             {"mutates-state-attribute", "mutates-state", "prim::SetAttr"},
             {"trip-count", "trip-count", "loop"},
             {"trip-count-many", "trip-count", "loop of more than 1000 trips"},
             {"trip-count-return", "trip-count", "loop"},
             {"data-flow-return", "data-flow", "data-dependent control flow"},
             {"no-rule", "no-rule", "aten::i0"}}) {
      bool found = false;
      for (const auto &offender : json["offenders"])
        if (offender["line"] == lineOf(tag)) {
          EXPECT_EQ(offender["cause"], cause) << offender;
          EXPECT_NE(offender["op"].get<std::string>().find(op), std::string::npos) << offender;
          EXPECT_NE(offender["why"], "");
          EXPECT_NE(offender["to_do"], "");
          EXPECT_NE(offender["file"].get<std::string>().find("make_scripted.py"),
                    std::string::npos);
          found = true;
        }
      EXPECT_TRUE(found) << tag << "\n" << json;
    }
  }
}

TEST_F(ScriptedModels, CompileListsAllOffendersAtOnce) {
  const Outcome outcome = cgc({"compile", scriptedModels() / "Offenders.pt", "-o", "p.cgplan",
                               "--input", "x=f32[4]", "--target", "cpu"});
  EXPECT_EQ(outcome.status, 4);
  EXPECT_FALSE(fs::exists(folder / "p.cgplan"));
  for (const char *tag : {"host-read", "data-flow", "data-shape", "trip-count", "no-rule"})
    EXPECT_NE(outcome.err.find("make_scripted.py:" + std::to_string(lineOf(tag)) + ": error: "),
              std::string::npos)
        << outcome.err;
  EXPECT_NE(outcome.err.find("to do: compute with the tensor itself"), std::string::npos);
}

TEST_F(ScriptedModels, CompileGivesOffendersAsJson) {
  const Outcome outcome = cgc({"compile", scriptedModels() / "Offenders.pt", "-o", "p.cgplan",
                               "--input", "x=f32[4]", "--json"});
  EXPECT_EQ(outcome.status, 4);
  const auto json = parseJson(outcome, "error");
  EXPECT_EQ(json["code"], "unsupported");
  const auto report = parseJson(cgc({"inspect", scriptedModels() / "Offenders.pt", "--capturable",
                                     "--input", "x=f32[4]", "--json"}),
                                "capturability");
  EXPECT_EQ(json["offenders"], report["offenders"]);
  const auto &offenders = json["offenders"];
  const auto found = std::ranges::find_if(
      offenders, [](const auto &offender) { return offender["line"] == lineOf("data-shape"); });
  ASSERT_NE(found, offenders.end()) << offenders;
  EXPECT_EQ((*found)["op"], "aten::nonzero");
  EXPECT_EQ((*found)["cause"], "data-shape");
  EXPECT_EQ((*found)["why"], "the shape of its result depends on data");
  EXPECT_NE((*found)["to_do"], "");
  EXPECT_EQ((*found)["module"], "");
  // An error that the model does not cause has no offenders.
  const Outcome usage = cgc({"compile", scriptedModels() / "Offenders.pt", "-o", "p.cgplan",
                             "--input", "w=f32[4]", "--json"});
  EXPECT_FALSE(parseJson(usage, "error").contains("offenders"));
}

TEST_F(ScriptedModels, OnlyTypesThatDoNotFitAreBlamedOnTheInputs) {
  for (const auto &[method, message] : std::vector<std::pair<const char *, const char *>>{
           {"past", "list of 2"},
           {"zero", "aten.floor_divide of [1, 0]: "},
           {"overflow", "aten.add of "},
           {"number", "which is not a tensor"},
           {"nothing", "returns no tensor"},
           {"airy", "to do: write it with other ops, or add the op"},
           {"types", "to do: x=f32[4] may not be what the model takes"}}) {
    const Outcome outcome = cgc({"compile", scriptedModels() / "NotTypes.pt", "-o", "p.cgplan",
                                 "--entry", method, "--input", "x=f32[4]", "--target", "cpu"});
    EXPECT_EQ(outcome.status, 4) << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("may not be what") != std::string::npos,
              method == std::string("types"))
        << outcome.err;
  }
}

TEST_F(ScriptedModels, AListOfTensorsIsRefusedOnce) {
  const Outcome outcome = cgc({"compile", scriptedModels() / "ListInput.pt", "-o", "p.cgplan",
                               "--input", "x=f32[4]", "--target", "cpu", "--json"});
  const auto json = parseJson(outcome, "error");
  EXPECT_NE(outcome.out.find("is of type List[Tensor]"), std::string::npos) << outcome.out;
  for (const char *other : {"getitem", "loop", "may not be what"})
    EXPECT_EQ(outcome.out.find(other), std::string::npos) << outcome.out;
}

TEST_F(ScriptedModels, StreamsAreNamedWithWhatElseIsInTheWay) {
  const fs::path model = scriptedModels() / "Streams.pt";
  for (const std::vector<std::string> &arguments :
       {std::vector<std::string>{"inspect", model, "--capturable", "--json"},
        {"compile", model, "-o", "p.cgplan", "--input", "x=f32[4]", "--json"}}) {
    const Outcome outcome = cgc(arguments);
    EXPECT_EQ(outcome.status, 4) << outcome.err;
    const auto json = parseJson(outcome, arguments[0] == "inspect" ? "capturability" : "error");
    std::vector<std::pair<int, std::string>> found;
    for (const auto &offender : json["offenders"])
      found.emplace_back(offender["line"], offender["cause"]);
    EXPECT_EQ(json["offenders"][0]["op"], "cuda::current_stream");
    const int line = lineOf("stream-object");
    EXPECT_EQ(found,
              (std::vector<std::pair<int, std::string>>{{line, "default-stream"},
                                                        {line, "default-stream"},
                                                        {lineOf("beside-stream"), "data-shape"}}))
        << json;
  }
}

TEST_F(ScriptedModels, BucketsWithOtherOutputsAreRefusedByLine) {
  const Outcome outcome = cgc({"compile", scriptedModels() / "OtherOutputs.pt", "-o", "p.cgplan",
                               "--input", "x=f32[1,4]", "--batch", "1,2", "--target", "cpu"});
  expectError(outcome, 4,
              {"make_scripted.py:" + std::to_string(lineOf("other-outputs")) + ": error: ",
               "returns (output: bool), for those of another bucket (output: f32)",
               "to a plan of their own"});
  EXPECT_TRUE(files().empty());
}

TEST_F(ScriptedModels, WhatCanBeCapturedIsSaidSo) {
  const Outcome outcome =
      cgc({"inspect", scriptedModels() / "Offenders.pt", "--capturable", "--entry", "forward"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("error"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("forward: can be captured"), std::string::npos) << outcome.out;
  EXPECT_EQ(cgc({"inspect", models() / "tiny_fp32.pt", "--capturable"}).status, 0);
  EXPECT_EQ(cgc({"inspect", scriptedModels() / "Loops.pt", "--input", "x=f32[4]"}).status, 2);
}

} // namespace
} // namespace cgc::e2e
