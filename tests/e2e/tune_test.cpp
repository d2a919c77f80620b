// Tests of cgc tune and compile --tune: their requirements and, with a GPU, their results.
#include "tool.h"

namespace cgc::e2e {
namespace {

class Tune : public ToolTest {
protected:
  std::vector<std::string> compileForCuda(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"compile", (models() / "tiny_fp16.pt").string(),
                                          "-o",      "plan.cgplan",
                                          "--input", "text=i64[1,16]",
                                          "--entry", "encode_text"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

TEST_F(Tune, IsForCudaPlans) {
  expectError(cgc(compileForCuda({"--tune", "--target", "cpu"})), 2, {"--tune", "cuda"});
  EXPECT_TRUE(files().empty());
  makePlan({"--entry", "encode_text"});
  const std::string before = readFile(folder / "plan.cgplan");
  expectError(cgc({"tune", "plan.cgplan"}), 2, {"target cpu", "--target cuda"});
  EXPECT_EQ(readFile(folder / "plan.cgplan"), before);
  expectError(cgc({"tune", "missing.cgplan"}), 3, {"missing.cgplan"});
  expectError(cgc({"tune", "plan.cgplan", "--op-library", "ops.so", "-o", "ops.so"}), 2,
              {"'ops.so' would be overwritten"});
}

TEST_F(Tune, WithoutAGpuSaysWhatItNeedsAndWritesNothing) {
  if (hasGpu())
    GTEST_SKIP() << "there is a GPU";
  expectError(cgc(compileForCuda({"--tune"})), 6, {"tuning times each GEMM on a GPU", "cgc tune"});
  EXPECT_TRUE(files().empty());
  ASSERT_EQ(cgc(compileForCuda()).status, 0);
  const std::string before = readFile(folder / "plan.cgplan");
  expectError(cgc({"tune", "plan.cgplan", "-o", "tuned.cgplan"}), 6, {"GPU", "cgc tune"});
  EXPECT_FALSE(fs::exists(folder / "tuned.cgplan"));
  EXPECT_EQ(readFile(folder / "plan.cgplan"), before);
}

TEST_F(Tune, InspectNamesTheGpuThatShapesAreFor) {
  ASSERT_EQ(cgc(compileForCuda()).status, 0);
  const auto json = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  EXPECT_EQ(json["gpu"]["name"], "NVIDIA H200");
  EXPECT_EQ(json["gpu"]["multiprocessors"], 132);
  EXPECT_EQ(json["gpu"]["tuned"], false);
  ASSERT_EQ(cgc(compileForCuda({"--arch", "sm_80"})).status, 0);
  EXPECT_NE(cgc({"inspect", "plan.cgplan"}).out.find("launch shapes for NVIDIA A100 (108 SMs)"),
            std::string::npos);
}

TEST_F(Tune, OnAGpuKeepsThePlanRight) {
  if (!hasGpu())
    GTEST_SKIP() << "needs a GPU";
  ASSERT_EQ(cgc(compileForCuda({"--tune"})).status, 0);
  EXPECT_EQ(parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan")["gpu"]["tuned"], true);
  EXPECT_EQ(cgc({"compare", "plan.cgplan", (models() / "tiny_fp16.pt").string()}).status, 0);
  ASSERT_EQ(cgc(compileForCuda()).status, 0);
  const auto json = parseJson(cgc({"tune", "plan.cgplan", "--json"}), "tune");
  EXPECT_GT(json["gemms"].size(), 0u);
  EXPECT_EQ(cgc({"compare", "plan.cgplan", (models() / "tiny_fp16.pt").string()}).status, 0);
}

} // namespace
} // namespace cgc::e2e
