// Tests of cgc profile: the time of each record, groups of records, the trace, and errors.
#include "tool.h"

namespace cgc::e2e {
namespace {

class Profile : public ToolTest {};

TEST_F(Profile, HasATimeForEachRecord) {
  makePlan({"--entry", "encode_text"});
  const auto plan = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  const Outcome outcome = cgc({"profile", "plan.cgplan", "--trace", "t.json", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "profile");
  ASSERT_EQ(json["buckets"].size(), 1u);
  const auto &bucket = json["buckets"][0];
  const size_t records = plan["entries"][0]["buckets"][0]["records"];
  ASSERT_EQ(bucket["records"].size(), records);
  EXPECT_GT(bucket["total_us"], 0.0);
  size_t named = 0;
  for (const auto &record : bucket["records"]) {
    EXPECT_GE(record["us"], 0.0);
    named += !record["module"].get<std::string>().empty() &&
             !record["source"].get<std::string>().empty();
  }
  EXPECT_GT(named, records / 2);
  for (const char *groups : {"ops", "modules"}) {
    size_t sum = 0;
    for (const auto &group : bucket[groups])
      sum += group["records"].get<size_t>();
    EXPECT_EQ(sum, records) << groups;
  }
  const auto trace = nlohmann::json::parse(readFile(folder / "t.json"));
  // The trace has the records end to end.
  size_t slices = 0;
  double end = 0;
  for (const auto &event : trace["traceEvents"]) {
    if (event["ph"] != "X")
      continue;
    EXPECT_EQ(event["name"], bucket["records"].at(slices)["op"]);
    EXPECT_GE(event["dur"], 0.0);
    EXPECT_NEAR(event["ts"], end, 1e-6);
    end += event["dur"].get<double>();
    ++slices;
  }
  EXPECT_EQ(slices, records);
}

TEST_F(Profile, RefusesWhatThePlanHasNotAndToOverwriteIt) {
  makePlan();
  expectError(cgc({"profile", "plan.cgplan", "--entry", "encode_sound"}), 2,
              {"encode_sound", "encode_text"});
  expectError(cgc({"profile", "plan.cgplan", "--batch", "7"}), 2, {"batch 7"});
  expectError(cgc({"profile", "plan.cgplan", "--trace", "plan.cgplan"}), 2, {"overwritten"});
  expectError(cgc({"profile", "plan.cgplan", "--op-library", "ops.so", "--trace", "ops.so"}), 2,
              {"'ops.so' would be overwritten"});
  EXPECT_EQ(files(), std::vector<std::string>{"plan.cgplan"});
}

} // namespace
} // namespace cgc::e2e
