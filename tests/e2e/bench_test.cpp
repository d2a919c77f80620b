// Tests of cgc bench: its fields, the order of its figures, and its errors; no test checks speed.
#include "tests/paths.h"
#include "tool.h"

namespace cgc::e2e {
namespace {

class Bench : public ToolTest {};

void expectOrdered(const nlohmann::json &figure) {
  EXPECT_GT(figure["min"], 0.0);
  EXPECT_GE(figure["median"], figure["min"]);
  EXPECT_GE(figure["p90"], figure["median"]);
  EXPECT_GE(figure["p99"], figure["p90"]);
}

TEST_F(Bench, MeasuresEveryBucketOfACpuPlan) {
  makePlan({"--batch", "1,2"});
  const Outcome outcome = cgc({"bench", "plan.cgplan", "--samples", "30", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "bench");
  EXPECT_EQ(json["target"], "cpu");
  EXPECT_EQ(json["samples"], 30);
  EXPECT_GT(json["load_ms"], 0.0);
  ASSERT_EQ(json["buckets"].size(), 6u); // Three entries.
  for (const auto &bucket : json["buckets"]) {
    expectOrdered(bucket["latency_ms"]);
    expectOrdered(bucket["back_to_back_ms"]);
    EXPECT_GE(bucket["runs_per_sample"], 1);
    EXPECT_GT(bucket["records"], 0);
    for (const char *field : {"gpu_ms", "submit_ms", "capture_ms"}) // These figures need a GPU.
      EXPECT_FALSE(bucket.contains(field)) << field;
  }
}

TEST_F(Bench, MeasuresWhatIsAskedFor) {
  makePlan({"--batch", "1,2,3"});
  const auto json = parseJson(cgc({"bench", "plan.cgplan", "--entry", "encode_text", "--batch",
                                   "1,3", "--samples", "30", "--json"}),
                              "bench");
  ASSERT_EQ(json["buckets"].size(), 2u);
  EXPECT_EQ(json["buckets"][0]["inputs"], "text=i64[1,16]");
  EXPECT_EQ(json["buckets"][1]["inputs"], "text=i64[3,16]");
  for (const auto &bucket : json["buckets"])
    EXPECT_EQ(bucket["entry"], "encode_text");
}

TEST_F(Bench, PrintsTheDefinitionsBesideTheFigures) {
  makePlan({"--entry", "encode_text"});
  const Outcome outcome = cgc({"bench", "plan.cgplan", "--samples", "30"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char *text : {"encode_text", "p99", "30 samples", "latency       one run alone",
                           "back-to-back  time per run", "load: "})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " in:\n" << outcome.out;
  EXPECT_EQ(outcome.out.find("GPU"), std::string::npos) << outcome.out;
}

TEST_F(Bench, MeasuresLibTorchBesideAndMakesTheTable) {
  makePlan({"--entry", "encode_text,encode_image"});
  const std::string model = (models() / "tiny_fp32.pt").string();
  const Outcome outcome =
      cgc({"bench", "plan.cgplan", "--against", model, "--table", "--samples", "30", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "bench");
  EXPECT_EQ(json["against"], model);
  ASSERT_EQ(json["buckets"].size(), 2u);
  for (const auto &bucket : json["buckets"]) {
    ASSERT_EQ(bucket["peers"].size(), 2u) << "a cpu plan has no captured column";
    EXPECT_EQ(bucket["peers"][0]["system"], "eager");
    EXPECT_EQ(bucket["peers"][1]["system"], "frozen");
    for (const auto &peer : bucket["peers"]) {
      ASSERT_TRUE(peer.contains("latency_ms")) << peer;
      expectOrdered(peer["latency_ms"]);
      expectOrdered(peer["back_to_back_ms"]);
      EXPECT_GE(peer["runs_per_sample"], 1);
    }
    ASSERT_EQ(bucket["table"].size(), 4u);
    const double eager = bucket["peers"][0]["back_to_back_ms"]["median"];
    EXPECT_DOUBLE_EQ(bucket["table"][2]["eager_s"], eager);
    const double load = json["load_ms"], plan = bucket["back_to_back_ms"]["median"];
    EXPECT_DOUBLE_EQ(bucket["table"][2]["plan_s"], (load + 1000 * plan) / 1e3);
    EXPECT_TRUE(bucket.contains("break_even_calls"));
  }
  const Outcome text = cgc({"bench", "plan.cgplan", "--against", model, "--entry", "encode_text",
                            "--table", "--samples", "30"});
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char *part : {"eager latency", "frozen back-to-back", "break-even, calls", "10000",
                           "eager         the model", "Table: eager"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " in:\n" << text.out;
  EXPECT_EQ(text.out.find("captured      "), std::string::npos) << text.out;
}

/// Freezing ends training mode, which this model needs, so only eager can be measured.
TEST_F(Bench, FrozenIsNotEager) {
  const std::string model = (models() / "only_in_training.pt").string();
  ASSERT_EQ(
      cgc({"compile", model, "-o", "plan.cgplan", "--input", "x=f32[4]", "--target", "cpu"}).status,
      0);
  const Outcome outcome =
      cgc({"bench", "plan.cgplan", "--against", model, "--samples", "30", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "bench");
  const auto &peers = json["buckets"][0]["peers"];
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_TRUE(peers[0].contains("latency_ms")) << peers[0];
  EXPECT_EQ(peers[1]["system"], "frozen");
  EXPECT_FALSE(peers[1].contains("latency_ms")) << peers[1];
  const std::string why = peers[1].value("not_measured", "");
  EXPECT_NE(why.find("in evaluation mode"), std::string::npos) << peers[1];
}

TEST_F(Bench, DiesOfSigtermWhileLibTorchRuns) {
  makePlan({"--entry", "encode_text"});
  const Outcome outcome = cgc({"bench", "plan.cgplan", "--against", models() / "tiny_fp32.pt"},
                              {.signal = SIGTERM, .killOnPhase = "bench LibTorch"});
  EXPECT_EQ(outcome.status, 128 + SIGTERM) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

/// The default action of such a process is to ignore signals, so only a handler can end it.
TEST_F(Bench, DiesOfSigtermAsTheFirstProcessOfAContainer) {
  const std::vector<std::string> container = {
      "unshare", "--user", "--map-root-user", "--pid", "--fork", "bash", "-c"};
  const auto inContainer = [&](const std::string &command) {
    std::vector<std::string> all = container;
    all.push_back(command);
    return runProgram(all, folder);
  };
  if (inContainer("[ $$ = 1 ]").status != 0)
    GTEST_SKIP() << "this machine lets no user make a container";
  makePlan({"--entry", "encode_text"});
  const Outcome outcome = inContainer(
      "(until grep -q 'bench encode_text' err; do sleep 0.05; done; kill -TERM 1) & "
      "exec " +
      (test::buildDir() / "bin/cgc").string() + " bench plan.cgplan --samples 20000 2> err");
  EXPECT_EQ(outcome.status, 128 + SIGTERM);
  EXPECT_EQ(outcome.out, "");
}

TEST_F(Bench, MeasuresTheMemoryOfEachStage) {
  makePlan({"--entry", "encode_text"});
  const auto json = parseJson(cgc({"bench", "plan.cgplan", "--memory", "--json"}), "memory_stages");
  EXPECT_EQ(json["measured"], "resident");
  std::vector<std::string> names;
  for (const auto &stage : json["stages"]) {
    names.push_back(stage["stage"]);
    EXPECT_EQ(stage["difference_bytes"].get<int64_t>(),
              stage["measured_bytes"].get<int64_t>() - stage["rounded_bytes"].get<int64_t>());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"model ready", "static inputs", "after capture",
                                             "steady", "peak"}));
  const auto plan = parseJson(cgc({"memory", "plan.cgplan", "--json"}), "memory")["plans"][0];
  EXPECT_EQ(json["stages"][1]["predicted_bytes"].get<int64_t>(),
            plan["arena_bytes"].get<int64_t>() + plan["io_bytes"].get<int64_t>());
  EXPECT_NE(cgc({"bench", "plan.cgplan", "--memory"}).out.find("steady"), std::string::npos);
  expectError(cgc({"bench", "plan.cgplan", "--memory", "--rate", "1"}), 2, {"--memory"});
  expectError(cgc({"bench", "plan.cgplan", "--memory", "--batch", "1"}), 2, {"--memory"});
}

TEST_F(Bench, RefusesAModelThatIsNotThePlans) {
  makePlan({"--entry", "encode_text"});
  expectError(cgc({"bench", "plan.cgplan", "--table"}), 2, {"--against"});
  expectError(cgc({"bench", "plan.cgplan", "--against", "missing.pt"}), 3, {"missing.pt"});
  writeFile(folder / "text.pt", "no model");
  const auto expectRefused = [&](const std::string &model, int status,
                                 const std::vector<std::string> &texts) {
    const Outcome outcome = cgc({"bench", "plan.cgplan", "--against", model});
    expectError(outcome, status, texts);
    EXPECT_EQ(outcome.err.find("bench encode_"), std::string::npos)
        << "measured before it was refused:\n"
        << outcome.err;
  };
  expectRefused("text.pt", 3, {"text.pt"});
  expectRefused(models() / "no_rule.pt", 2,
                {"LibTorch, encode_text: the model has no such method", "was the plan compiled"});
  // With another image size the message has LibTorch's own error and names the model.
  makePlan({"--entry", "encode_image"});
  expectRefused(familyModels() / "EVA02-B-16.pt", 1,
                {"LibTorch, encode_image: ", "was the plan compiled from this model?"});
}

TEST_F(Bench, RefusesFewSamplesAndWhatThePlanHasNot) {
  makePlan();
  expectError(cgc({"bench", "plan.cgplan", "--samples", "29"}), 2, {"--samples", "29", "30"});
  const std::string help = cgc({"bench", "--help"}).out;
  EXPECT_NE(help.find("--samples N:INT in [30 - "), std::string::npos) << help;
  expectError(cgc({"bench", "plan.cgplan", "--entry", "encode_sound"}), 2,
              {"encode_sound", "encode_text"});
  expectError(cgc({"bench", "plan.cgplan", "--batch", "7"}), 2, {"batch 7", "[1,3,32,32]"});
  expectError(cgc({"bench", "missing.cgplan"}), 3, {"missing.cgplan"});
  expectError(cgc({"bench", "plan.cgplan", "--copies"}), 2,
              {"--copies is for plans with target cuda"});
}

} // namespace
} // namespace cgc::e2e
