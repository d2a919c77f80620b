// cgc doctor: the machine, and what a plan misses.
#include "tests/e2e/tool.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace cgc::e2e {
namespace {

using ::testing::HasSubstr;

class Doctor : public ToolTest {};

TEST_F(Doctor, ShowsTheMachine) {
  const Outcome outcome = cgc({"doctor", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "doctor");
  EXPECT_EQ(json["needed_cuda"], "13.0");
  EXPECT_EQ(json["gpus"].empty(), !hasGpu());
  EXPECT_FALSE(json.contains("plan"));
  bool hasAten = false;
  for (const auto &library : json["libraries"]) {
    EXPECT_NE(library["path"].is_null(), library["problem"].is_null()) << library;
    hasAten |= library["name"] == "libcgc_aten.so" && fs::exists(library["path"]);
  }
  EXPECT_TRUE(hasAten) << outcome.out;
  EXPECT_THAT(cgc({"doctor"}).out, HasSubstr("driver"));
}

TEST_F(Doctor, APlanForTheHostRuns) {
  makePlan({"--entry", "encode_text"});
  const Outcome outcome = cgc({"doctor", "plan.cgplan", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto plan = parseJson(outcome, "doctor")["plan"];
  EXPECT_EQ(plan["can_run"], true);
  ASSERT_EQ(plan["needs"].size(), 2u) << plan; // LibTorch and memory.
  for (const auto &need : plan["needs"])
    EXPECT_EQ(need["ok"], true) << need;
}

TEST_F(Doctor, SaysWhatIsMissing) {
  if (hasGpu())
    GTEST_SKIP() << "there is a GPU";
  ASSERT_EQ(cgc({"compile", (models() / "tiny_fp16.pt").string(), "-o", "plan.cgplan", "--input",
                 "text=i64[1,16]", "--entry", "encode_text"})
                .status,
            0);
  const Outcome outcome = cgc({"doctor", "plan.cgplan", "--json"});
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(outcome.err, HasSubstr("'plan.cgplan' cannot run here: 1 of the"));
  const auto plan = parseJson(outcome, "doctor")["plan"];
  EXPECT_EQ(plan["can_run"], false);
  EXPECT_THAT(plan["needs"][0]["what"], HasSubstr("a GPU"));
  EXPECT_THAT(plan["needs"][0]["problem"], HasSubstr("--executor reference"));
  const Outcome text = cgc({"doctor", "plan.cgplan"});
  EXPECT_EQ(text.status, 6);
  EXPECT_THAT(text.out, HasSubstr("MISSING  a GPU"));
}

TEST_F(Doctor, RefusesWhatIsNoPlan) {
  expectError(cgc({"doctor", "missing.cgplan"}), 3, {"missing.cgplan"});
  expectError(cgc({"doctor", ""}), 3, {"'' does not exist"});
  const Outcome outcome = cgc({"doctor", "missing.cgplan", "--json"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(parseJson(outcome, "error")["code"], "invalid_file");
}

} // namespace
} // namespace cgc::e2e
