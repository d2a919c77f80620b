// Tests of --host-module: submodules that LibTorch runs beside a plan give the results of LibTorch
// alone, and what cannot be left to the host is refused.
#include "tool.h"

#include <fstream>

namespace cgc::e2e {
namespace {

class HostModules : public ToolTest {
protected:
  HostModules() : model_(scriptedModels() / "HostParts.pt") {}

  Outcome compile(std::vector<std::string> more, const std::string &entry = "forward") {
    std::vector<std::string> arguments = {"compile", model_,       "-o",      "plan.cgplan",
                                          "--input", "x=f32[3,4]", "--entry", entry};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cgc(arguments);
  }
  /// Compiles with all parts of `forward` that need the host left to it.
  void compileForward(std::vector<std::string> more) {
    more.insert(more.end(), {"--host-module", "gates.*", "--host-module", "halves"});
    const Outcome compiled = compile(more);
    ASSERT_EQ(compiled.status, 0) << compiled.err;
  }
  void expectAgreement(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"compare", "plan.cgplan", model_, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome compared = cgc(arguments);
    EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
    EXPECT_TRUE(parseJson(compared, "compare")["passed"]) << compared.out;
  }

  const fs::path model_;
};

TEST_F(HostModules, GiveTheResultsOfLibTorch) {
  compileForward({"--target", "cpu", "--batch", "1,3"});
  expectAgreement();
  EXPECT_EQ(compile({"--target", "cpu", "--host-module", "gates.1"}, "only_host").status, 0);
  expectAgreement();
}

TEST_F(HostModules, RunBesideTheReferencesOfACudaPlan) {
  compileForward({"--target", "cuda"});
  expectAgreement({"--executor", "reference"});
}

TEST_F(HostModules, KeepTheirDtypesInAnotherPrecision) {
  compileForward({"--target", "cuda", "--precision", "fp16"});
  // Its branches depend on rounding, so that the results are not compared.
  const Outcome run = cgc({"run", "plan.cgplan", "--executor", "reference", "--input", "x=random:1",
                           "--output", "y.npy", "--host-modules", model_});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(npyHeader(folder / "y.0.npy").find("<f2"), std::string::npos);
}

TEST_F(HostModules, OfATracedModelMayBeScripted) {
  const fs::path model = scriptedModels() / "TracedParts.pt";
  const std::vector<std::string> compile = {"compile", model,        "-o",       "plan.cgplan",
                                            "--input", "x=f32[3,4]", "--target", "cpu"};
  expectError(cgc(compile), 4, {"data-dependent control flow"});
  std::vector<std::string> hosted = compile;
  hosted.insert(hosted.end(), {"--host-module", "gate"});
  const Outcome compiled = cgc(hosted);
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const Outcome compared = cgc({"compare", "plan.cgplan", model});
  EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
}

TEST_F(HostModules, AreListedAndTheirWeightsAreNotInThePlan) {
  compileForward({"--target", "cpu"});
  const Outcome text = cgc({"inspect", "plan.cgplan"});
  EXPECT_NE(text.out.find("host function gates.0.forward, called at "), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("rows depend on each other: cgc.host_call"), std::string::npos)
      << text.out;
  const auto json = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  EXPECT_EQ(json["requirements"]["host_functions"],
            (std::vector<std::string>{"gates.0.forward", "gates.1.forward", "halves.forward"}));
  EXPECT_EQ(json["entries"][0]["buckets"][0]["records_by_kind"]["host gates.0.forward"], 2);
  EXPECT_EQ(json["weights"], 4); // Of the two linears.
}

TEST_F(HostModules, AreNotNeededToInspectThePlan) {
  compileForward({"--target", "cuda"});
  const Outcome text = cgc({"inspect", "plan.cgplan", "--executor", "reference"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("can run every record here, with the host functions above"),
            std::string::npos)
      << text.out;
  const auto json =
      parseJson(cgc({"inspect", "plan.cgplan", "--executor", "reference", "--json"}), "plan");
  EXPECT_EQ(json["verified"], "all");
}

TEST_F(HostModules, AreNeededToRunThePlan) {
  compileForward({"--target", "cpu"});
  const std::vector<std::string> run = {"run",        "plan.cgplan", "--input",
                                        "x=random:1", "--output",    "y.npy"};
  expectError(cgc(run), 2,
              {"the plan calls the host function 'gates.0.forward'",
               "make_scripted.py:", "--host-modules MODEL.pt"});
  const auto with = [&](const fs::path &model) {
    std::vector<std::string> arguments = run;
    arguments.insert(arguments.end(), {"--host-modules", model});
    return cgc(arguments);
  };
  EXPECT_EQ(with(model_).status, 0);
  EXPECT_EQ(npyFloats(folder / "y.0.npy").size(), 12u);
  expectError(with(scriptedModels() / "Flags.pt"), 2,
              {"entry 'forward': host gates.0.forward", "the model has no module 'gates'"});
  expectError(with("missing.pt"), 3, {"missing.pt"});
  const Outcome bench = cgc({"bench", "plan.cgplan", "--samples", "30", "--host-modules", model_});
  EXPECT_EQ(bench.status, 0) << bench.err;
  const Outcome profile = cgc({"profile", "plan.cgplan", "--host-modules", model_});
  EXPECT_EQ(profile.status, 0) << profile.err;
}

TEST_F(HostModules, ThatThePlanDoesNotCallAreNoted) {
  ASSERT_EQ(cgc({"compile", scriptedModels() / "OptionalInput.pt", "-o", "plan.cgplan", "--input",
                 "x=f32[1,4]", "--target", "cpu"})
                .status,
            0);
  const Outcome run =
      cgc({"run", "plan.cgplan", "--input", "x=random:1", "--host-modules", "none"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("--host-modules none is not used"), std::string::npos) << run.err;
}

TEST_F(HostModules, ThatNothingCallsAreRefused) {
  expectError(compile({"--target", "cpu", "--host-module", "halve"}), 2,
              {"no module that is called matches 'halve'; did you mean 'halves'?"});
  expectError(compile({"--target", "cpu", "--host-module", "a b"}), 2,
              {"--host-module 'a b' is not the path of a module"});
  expectError(compile({"--target", "cpu", "--passes", "inline", "--host-module", "halves"}), 2,
              {"--passes"});
  EXPECT_TRUE(files().empty());
}

TEST_F(HostModules, WhatTheHostCannotTakeIsNamedWithItsLine) {
  const auto refuse = [&](const std::string &entry, const std::string &glob,
                          const std::string &why) {
    expectError(compile({"--target", "cpu", "--host-module", glob}, entry), 4,
                {why, "make_scripted.py:"});
  };
  refuse("number", "gates.0", "2.0 is passed to a module of the host");
  refuse("data_shape", "selects", "the types of its results depend on the values of its inputs");
  refuse("overwrite", "overwrites", "it overwrites its argument 'x'");
  refuse("name", "names", "it returns a tuple with a String");
  EXPECT_TRUE(files().empty());
}

} // namespace
} // namespace cgc::e2e
