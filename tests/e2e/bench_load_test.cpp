// Tests of cgc bench under load: its fields, its counts, and its errors; no test checks speed.
#include "tool.h"

namespace cgc::e2e {
namespace {

class BenchLoad : public ToolTest {};

TEST_F(BenchLoad, MeasuresAMixInAClosedLoop) {
  makePlan({"--entry", "encode_text", "--batch", "1,4"});
  const Outcome outcome = cgc({"bench", "plan.cgplan", "--threads", "2", "--contexts", "2", "--mix",
                               "1:70,4:20,6:10", "--seconds", "0.5", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "load");
  EXPECT_EQ(json["clients"], 2);
  EXPECT_EQ(json["contexts"], 2);
  EXPECT_TRUE(json["rate"].is_null());
  ASSERT_EQ(json["mix"].size(), 3u);
  EXPECT_EQ(json["mix"][2]["inputs"], "text=i64[6,16]"); // The plan has no such bucket.
  const auto &load = json["load"];
  EXPECT_EQ(load["failures"], 0);
  uint64_t succeeded = 0;
  for (const auto &kind : json["mix"])
    succeeded += kind["succeeded"].get<uint64_t>();
  EXPECT_EQ(load["requests"], succeeded);
  EXPECT_EQ(json["back_to_back"]["requests"], succeeded);
  EXPECT_GT(json["of_back_to_back"], 0.0);
  for (const auto &[less, more] :
       {std::pair("min", "median"), {"median", "p90"}, {"p90", "p99"}, {"p99", "max"}})
    EXPECT_LE(load["latency_ms"][less], load["latency_ms"][more]) << less;
}

TEST_F(BenchLoad, MeasuresAnOpenLoopAndSwaps) {
  makePlan({"--entry", "encode_text"});
  fs::copy(folder / "plan.cgplan", folder / "other.cgplan");
  const Outcome outcome =
      cgc({"bench", "plan.cgplan", "--rate", "50", "--threads", "4", "--seconds", "0.5", "--swap",
           "other.cgplan", "--swap-every", "0.05", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "load");
  EXPECT_EQ(json["rate"], 50.0);
  EXPECT_GT(json["swap"]["swaps"], 0);
  EXPECT_EQ(json["swap"]["load"]["failures"], 0);
  EXPECT_TRUE(json["swap"].contains("p99_ratio"));
}

TEST_F(BenchLoad, PrintsTheDefinitionsBesideTheFigures) {
  makePlan({"--entry", "encode_text"});
  const Outcome outcome = cgc({"bench", "plan.cgplan", "--seconds", "0.1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char *text : {"requests/s", "latency p50", "p99", "waits", "back-to-back: ",
                           "closed loop; clients: 1, contexts: 1", "latency       of the requests"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " in:\n" << outcome.out;
}

TEST_F(BenchLoad, RefusesWhatDoesNotFit) {
  makePlan({"--entry", "encode_text"});
  const auto refused = [&](std::vector<std::string> options,
                           const std::vector<std::string> &texts) {
    options.insert(options.begin(), {"bench", "plan.cgplan"});
    expectError(cgc(options), 2, texts);
  };
  refused({"--mix", "1"}, {"--mix", "BATCH:WEIGHT", "got '1'"});
  refused({"--mix", "1:1", "--batch", "1"}, {"--mix and --batch both choose batches"});
  refused({"--mix", "1:1", "--samples", "30"}, {"--samples"});
  refused({"--mix", "1:1", "--against", "m.pt"}, {"--against"});
  refused({"--contexts", "0"}, {"--contexts"});
  refused({"--rate", "0"}, {"--rate"});
  refused({"--swap-every", "1"}, {"--swap"});
  refused({"--devices", "2"}, {"--devices is for plans with target cuda"});
  refused({"--tensors", "device"}, {"--tensors device is for plans with target cuda"});
  refused({"--tensors", "moon"}, {"--tensors", "host"});
  expectError(cgc({"bench", "plan.cgplan", "--swap", "missing.cgplan", "--seconds", "0.01"}), 3,
              {"missing.cgplan"});
  expectError(cgc({"bench", "missing.cgplan", "--seconds", "1"}), 3, {"missing.cgplan"});
  ASSERT_EQ(cgc(compileTiny(models() / "tiny_fp32.pt", "more.cgplan",
                            {"--entry", "encode_text", "--batch", "1,2"}))
                .status,
            0);
  refused({"--swap", "more.cgplan", "--seconds", "0.01"},
          {"--swap more.cgplan", "compiled with other options"});
}

} // namespace
} // namespace cgc::e2e
