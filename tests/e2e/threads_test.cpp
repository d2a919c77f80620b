// Tests of --threads, the number of threads with which LibTorch computes a cpu plan.
#include "tool.h"

#include <cmath>

namespace cgc::e2e {
namespace {

class Threads : public ToolTest {};

TEST_F(Threads, ResultsAgreeForAnyNumber) {
  makePlan();
  std::vector<std::vector<float>> results;
  for (const char *threads : {"1", "3"}) {
    const Outcome outcome = cgc({"run", "plan.cgplan", "--entry", "encode_image", "--input",
                                 "image=random:7", "--threads", threads, "--output", "y.npy"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    results.push_back(npyFloats(folder / "y.npy"));
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size(); ++i)
    EXPECT_NEAR(results[0][i], results[1][i], 1e-4);
}

TEST_F(Threads, EveryVerbThatRunsAPlanTakesThem) {
  makePlan({"--entry", "encode_text"});
  const fs::path model = models() / "tiny_fp32.pt";
  for (const std::vector<std::string> &command :
       {std::vector<std::string>{"compare", "plan.cgplan", model},
        {"profile", "plan.cgplan"},
        {"bench", "plan.cgplan", "--samples", "30", "--against", model}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--threads", "2"});
    const Outcome outcome = cgc(arguments);
    EXPECT_EQ(outcome.status, 0) << command[0] << "\n" << outcome.err;
  }
}

TEST_F(Threads, AreANumberFromOneOn) {
  makePlan({"--entry", "encode_text"});
  for (const char *verb : {"run", "compare", "profile", "bench"})
    for (const char *threads : {"0", "-1", "1025", "two"})
      expectError(cgc({verb, "plan.cgplan", "--threads", threads}), 2, {"--threads"});
}

TEST_F(Threads, AreForCpuPlans) {
  ASSERT_EQ(cgc({"compile", models() / "tiny_fp32.pt", "-o", "plan.cgplan", "--input",
                 "text=i64[1,16]", "--entry", "encode_text", "--target", "cuda"})
                .status,
            0);
  for (const std::vector<std::string> &command :
       {std::vector<std::string>{"run", "plan.cgplan", "--input", "text=random:0"},
        {"compare", "plan.cgplan", models() / "tiny_fp32.pt"},
        {"profile", "plan.cgplan"},
        {"bench", "plan.cgplan"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--threads", "2"});
    expectError(cgc(arguments), 2, {"--threads", "target cpu", "leave it out"});
  }
}

} // namespace
} // namespace cgc::e2e
