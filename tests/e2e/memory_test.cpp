// cgc memory: the bill of plans, and the bill of a memory pool.
#include "tests/e2e/tool.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace cgc::e2e {
namespace {

using ::testing::HasSubstr;

class Memory : public ToolTest {};

TEST_F(Memory, AddsUpWeightsArenasInputsAndOutputs) {
  makePlan({"--batch", "1,2", "--entry", "encode_text"});
  const auto inspected = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  const auto json =
      parseJson(cgc({"memory", "plan.cgplan", "--contexts", "3", "--buckets", "--json"}), "memory");
  const auto &plan = json["plans"][0];
  EXPECT_GE(plan["weight_bytes"], inspected["weight_bytes"]); // With padding.
  EXPECT_EQ(plan["arena_bytes"], inspected["arena_bytes"]);
  // Tokens are i64[N,16] and features f32[N,32], with N = 1 and N = 2.
  EXPECT_EQ(plan["io_bytes"], 3 * (16 * 8 + 32 * 4));
  EXPECT_EQ(plan["total_bytes"],
            plan["weight_bytes"].get<int64_t>() +
                3 * (plan["arena_bytes"].get<int64_t>() + plan["io_bytes"].get<int64_t>()));
  ASSERT_EQ(plan["buckets"].size(), 2u);
  EXPECT_EQ(plan["buckets"][1]["io_bytes"], 2 * (16 * 8 + 32 * 4));
  EXPECT_EQ(plan["buckets"][1]["arena_bytes"], plan["arena_bytes"]);
  EXPECT_FALSE(json.contains("pool"));
  EXPECT_EQ(plan["workspace_bytes"], 0); // Of cuda plans only.
}

TEST_F(Memory, ShowsTheWorkspaceOfGemmsAsPartOfTheArena) {
  ASSERT_EQ(cgc({"compile", models() / "tiny_fp32.pt", "-o", "cuda.cgplan", "--input",
                 "image=f32[64,3,32,32]"})
                .status,
            0);
  const auto json = parseJson(cgc({"memory", "cuda.cgplan", "--buckets", "--json"}), "memory");
  const auto &plan = json["plans"][0];
  const auto workspace = plan["workspace_bytes"].get<int64_t>();
  EXPECT_GT(workspace, 0);
  EXPECT_LT(workspace, plan["arena_bytes"].get<int64_t>());
  EXPECT_EQ(plan["buckets"][0]["workspace_bytes"], workspace);
  EXPECT_THAT(cgc({"memory", "cuda.cgplan"}).out,
              HasSubstr("The workspace of library GEMMs is part of the arena."));
}

TEST_F(Memory, RanksDivideTheStatesOfAShardedOptimizer) {
  ASSERT_EQ(cgc({"compile", trainingModels() / "mlp.pt", "-o", "step.cgplan", "--train", "forward",
                 "--input", "x=f32[16,32]", "--input", "y=i64[16]", "--optimizer", "adamw",
                 "--data-parallel", "--shard-optimizer"})
                .status,
            0);
  const auto bytes = [&](const std::string &ranks) {
    const auto json =
        parseJson(cgc({"memory", "step.cgplan", "--ranks", ranks, "--json"}), "memory");
    EXPECT_EQ(json["ranks"], std::stoi(ranks));
    return json["plans"][0]["state_bytes"].get<int64_t>();
  };
  const auto inspected = parseJson(cgc({"inspect", "step.cgplan", "--json"}), "plan");
  // Two moments of 32 * 64 + 64, 64 * 64 + 64 and 64 * 10 + 10 parameters.
  const int64_t divided = 2 * 4 * (2112 + 4160 + 650);
  EXPECT_EQ(inspected["divided_state_bytes"], divided);
  EXPECT_EQ(inspected["state_bytes"], bytes("1"));
  // The largest tensor of 4096 elements is more than half.
  EXPECT_NEAR(bytes("1") - bytes("2"), divided - 2 * 4 * 4096, 1024);
  EXPECT_EQ(bytes("3"), bytes("2"));
  EXPECT_THAT(cgc({"memory", "step.cgplan", "--ranks", "2"}).out,
              HasSubstr("The states are those of the rank of 2 that holds most."));
  EXPECT_THAT(cgc({"inspect", "step.cgplan"}).out, HasSubstr("Ranks divide 55.4 kB of them"));
}

TEST_F(Memory, PlansInAPoolShareTheLargestArena) {
  makePlan({"--batch", "4", "--entry", "encode_text"});
  ASSERT_EQ(
      cgc(compileTiny(models() / "tiny_fp32.pt", "one.cgplan", {"--entry", "encode_text"})).status,
      0);
  const auto json = parseJson(cgc({"memory", "one.cgplan", "plan.cgplan", "--json"}), "memory");
  const auto &one = json["plans"][0], &four = json["plans"][1];
  EXPECT_GT(four["arena_bytes"], one["arena_bytes"]);
  EXPECT_EQ(json["pool"]["arena_bytes"], four["arena_bytes"]);
  EXPECT_EQ(json["pool"]["total_bytes"].get<int64_t>(), one["total_bytes"].get<int64_t>() -
                                                            one["arena_bytes"].get<int64_t>() +
                                                            four["total_bytes"].get<int64_t>());
  const Outcome text = cgc({"memory", "one.cgplan", "plan.cgplan"});
  EXPECT_THAT(text.out, HasSubstr("In one memory pool the plans share an arena of"));
}

TEST_F(Memory, SaysWhatIsWrong) {
  writeFile(folder / "bad.cgplan", "no plan");
  expectError(cgc({"memory", "bad.cgplan"}), 3, {"bad.cgplan"});
  expectError(cgc({"memory", "none.cgplan"}), 3, {"none.cgplan"});
  expectError(cgc({"memory"}), 2, {"plans"});
  makePlan({"--entry", "encode_text"});
  expectError(cgc({"memory", "plan.cgplan", "--contexts", "0"}), 2, {"--contexts"});
}

} // namespace
} // namespace cgc::e2e
