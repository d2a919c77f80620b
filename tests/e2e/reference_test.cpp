// Tests of --executor reference: a plan for cuda runs without a GPU and without LibTorch, inspect
// says that it can, and verbs that measure refuse it.
#include "tests/paths.h"
#include "tool.h"

#include <algorithm>

namespace cgc::e2e {
namespace {

class ReferenceExecutor : public ToolTest {
protected:
  /// Compiles both towers of the tiny model for cuda to plan.cgplan.
  void makeCudaPlan(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = compileTiny(models() / "tiny_fp32.pt", "plan.cgplan",
                                                     {"--entry", "encode_image,encode_text"});
    *std::ranges::find(arguments, "cpu") = "cuda";
    arguments.insert(arguments.end(), more.begin(), more.end());
    ASSERT_EQ(cgc(arguments).status, 0);
  }
};

TEST_F(ReferenceExecutor, RunsAPlanForCuda) {
  makeCudaPlan({"--no-reuse"});
  const auto run = [&](const std::string &output, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run",      "plan.cgplan",   "--entry",    "encode_text",
                                          "--input",  "text=random:0", "--executor", "reference",
                                          "--output", output,          "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = cgc(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parseJson(outcome, "run");
  };
  const auto json = run("y.npy", {});
  EXPECT_EQ(json["executor"], "reference");
  EXPECT_EQ(json["target"], "cuda");
  EXPECT_EQ(json["graph_nodes"], 0);
  run("separate.npy", {"--separate-buffers"});
  EXPECT_TRUE(readFile(folder / "y.npy") == readFile(folder / "separate.npy"));
}

/// LibTorch cannot be found at the path in CGC_LIBTORCH.
TEST_F(ReferenceExecutor, NeedsNoLibTorchForAPlanOfKernels) {
  makeCudaPlan({"--require-native"});
  const std::vector<std::string> command = {"env",
                                            "CGC_LIBTORCH=/nonexistent",
                                            test::buildDir() / "bin" / "cgc",
                                            "run",
                                            "plan.cgplan",
                                            "--entry",
                                            "encode_image",
                                            "--input",
                                            "image=random:0",
                                            "--executor",
                                            "reference"};
  const Outcome outcome = runProgram(command, folder);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(ReferenceExecutor, InspectVerifiesThatItCanRunThePlan) {
  makeCudaPlan();
  const Outcome text = cgc({"inspect", "plan.cgplan", "--executor", "reference"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("The reference executor can run every record here."), std::string::npos)
      << text.out;
  const auto json =
      parseJson(cgc({"inspect", "plan.cgplan", "--executor", "reference", "--json"}), "plan");
  EXPECT_EQ(json["executor"], "reference");
  EXPECT_EQ(json["verified"], "all");
  expectError(cgc({"inspect", models() / "tiny_fp32.pt", "--executor", "reference"}), 2,
              {"--executor is for plans"});
}

TEST_F(ReferenceExecutor, IsNoneForTimesOrCpuPlans) {
  makeCudaPlan();
  for (const char *verb : {"bench", "profile", "tune"})
    expectError(cgc({verb, "plan.cgplan", "--executor", "reference"}), 2,
                {"--executor", "the reference executor is for results"});
  expectError(cgc({"profile", "plan.cgplan", "--executor", "graph"}), 2,
              {"this verb chooses the executor itself"});
  makePlan({"--entry", "encode_text"});
  expectError(cgc({"run", "plan.cgplan", "--input", "text=random:0", "--executor", "reference"}), 2,
              {"the reference executor runs plans with target cuda, and this plan's is cpu"});
}

/// With it, compare fails for a plan of another model, as it does on a GPU.
TEST_F(ReferenceExecutor, ComparesWithLibTorchOnTheCpu) {
  makeCudaPlan();
  const Outcome same = cgc({"compare", "plan.cgplan", models() / "tiny_fp32.pt", "--executor",
                            "reference", "--threads", "1", "--json"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(parseJson(same, "compare")["executor"], "reference");
  const Outcome other =
      cgc({"compare", "plan.cgplan", models() / "tiny_quickgelu.pt", "--executor", "reference"});
  EXPECT_EQ(other.status, 5) << other.err;
}

/// CUDA_VISIBLE_DEVICES hides the GPUs of a machine that has any.
TEST_F(ReferenceExecutor, IsSuggestedWhereThereIsNoGpu) {
  makeCudaPlan();
  const auto withoutGpu = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"env", "CUDA_VISIBLE_DEVICES=", test::buildDir() / "bin" / "cgc"});
    return runProgram(arguments, folder);
  };
  const std::vector<std::string> parts = {"the plan has target cuda",
                                          "cgc run --executor reference", "--target cpu"};
  expectError(
      withoutGpu({"run", "plan.cgplan", "--entry", "encode_text", "--input", "text=random:0"}), 6,
      parts);
  expectError(withoutGpu({"compare", "plan.cgplan", models() / "tiny_fp32.pt"}), 6, parts);
}

} // namespace
} // namespace cgc::e2e
