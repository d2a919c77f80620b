// Tests of cgc opt: it runs passes on IR text.
#include "tool.h"

namespace cgc::e2e {
namespace {

class Opt : public ToolTest {
protected:
  static constexpr const char *kGraph = "graph @f(%x: f32[2,3]) -> f32[2,3] {\n"
                                        "  %0 = aten.relu(%x) : f32[2,3]\n"
                                        "  %1 = aten.relu(%x) : f32[2,3]\n"
                                        "  %2 = aten.gelu(%x) : f32[2,3]\n"
                                        "  %3 = aten.add(%0, %1) : f32[2,3]\n"
                                        "  output %3\n}\n";
};

size_t count(const std::string &text, const std::string &what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

TEST_F(Opt, RunsPassesFromFileToFile) {
  writeFile(folder / "in.cgir", kGraph);
  const Outcome outcome = cgc({"opt", "in.cgir", "--passes", "cse,dce", "-o", "out.cgir"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string text = readFile(folder / "out.cgir");
  EXPECT_EQ(count(text, "aten.relu("), 1u) << text;
  EXPECT_EQ(count(text, "aten.gelu("), 0u) << text;
}

TEST_F(Opt, ReadsAndWritesStandardStreams) {
  const Outcome outcome = cgc({"opt", "-", "--passes", "cse"}, {.input = kGraph});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(count(outcome.out, "aten.relu("), 1u);
  EXPECT_EQ(count(outcome.out, "aten.gelu("), 1u);
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Opt, PrintsJson) {
  const Outcome plain = cgc({"opt", "-", "--passes", "cse,dce"}, {.input = kGraph});
  const Outcome printed = cgc({"opt", "-", "--passes", "cse,dce", "--json"}, {.input = kGraph});
  ASSERT_EQ(printed.status, 0) << printed.err;
  const auto json = parseJson(printed, "opt");
  EXPECT_EQ(json["passes"], "cse,dce");
  EXPECT_EQ(json["ops"]["aten.relu"], 1);
  EXPECT_EQ(json["text"], plain.out);
  const auto written = parseJson(
      cgc({"opt", "-", "--passes", "cse,dce", "-o", "out.cgir", "--json"}, {.input = kGraph}),
      "opt");
  EXPECT_EQ(written["path"], "out.cgir");
  EXPECT_FALSE(written.contains("text"));
  EXPECT_EQ(readFile(folder / "out.cgir"), plain.out);
  const Outcome wrong = cgc({"opt", "-", "--passes", "frobnicate", "--json"}, {.input = kGraph});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(parseJson(wrong, "error")["code"], "usage");
}

TEST_F(Opt, WithoutPassesIsARoundTrip) {
  const Outcome once = cgc({"opt", "-", "--passes", ""}, {.input = kGraph});
  ASSERT_EQ(once.status, 0) << once.err;
  EXPECT_EQ(cgc({"opt", "-", "--passes", ""}, {.input = once.out}).out, once.out);
}

TEST_F(Opt, PrintsAfterPassesOnStderr) {
  const Outcome outcome =
      cgc({"opt", "-", "--passes", "cse,dce", "--print-after", "cse"}, {.input = kGraph});
  ASSERT_EQ(outcome.status, 0);
  EXPECT_EQ(count(outcome.err, "aten.gelu("), 1u) << outcome.err;
  EXPECT_EQ(count(outcome.out, "aten.gelu("), 0u);
}

TEST_F(Opt, SaysWhatABinaryFileIs) {
  expectError(cgc({"opt", models() / "picture.png", "--passes", "cse"}), 3, {"a PNG image"});
  expectError(cgc({"opt", models() / "tiny_fp32.pt", "--passes", "cse"}), 3,
              {"a TorchScript module", "IR text"});
  writeFile(folder / "noise", std::string("\1\2\xff", 3));
  expectError(cgc({"opt", "noise", "--passes", "cse"}), 3, {"'noise'", "no kind"});
}

TEST_F(Opt, ShowsOnlyWhatATerminalCan) {
  const std::string name = "\x1b[31m\xff" + std::string(5000, 'x');
  const Outcome outcome =
      cgc({"opt", "-", "--passes", "cse"},
          {.input = "graph @f(%\"" + name + "\": f32[2]) -> f32[2] {\n  output %\"y" + name +
                    "\"\n}\n"});
  expectError(outcome, 3, {"<stdin>:2", R"(\x1b[31m\xffxxx)"});
  EXPECT_LT(outcome.err.size(), 2000u);
  for (const char c : outcome.err)
    EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << int(c);
}

TEST_F(Opt, StopsAfterAPassOrAPosition) {
  for (const char *last : {"cse", "1"}) {
    const Outcome outcome =
        cgc({"opt", "-", "--passes", "cse,dce", "--stop-after", last}, {.input = kGraph});
    EXPECT_EQ(count(outcome.out, "aten.relu("), 1u) << outcome.err;
    EXPECT_EQ(count(outcome.out, "aten.gelu("), 1u) << "dce has run";
  }
  expectError(cgc({"opt", "-", "--passes", "cse", "--stop-after", "dce"}, {.input = kGraph}), 2,
              {"'dce' is not in the pipeline cse"});
  expectError(cgc({"opt", "-", "--stop-after", "dce"}, {.input = kGraph}), 2,
              {"'dce': the pipeline has no passes; name them with --passes"});
}

TEST_F(Opt, PassLimitNamesTheRunsAndLeavesOutThoseBehindIt) {
  const Outcome outcome =
      cgc({"opt", "-", "--passes", "cse,dce", "--pass-limit", "1"}, {.input = kGraph});
  ASSERT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "pass run 1: cse on @f\npass run 2: dce on @f, left out\n");
  EXPECT_EQ(count(outcome.out, "aten.gelu("), 1u);
}

TEST_F(Opt, PrintsWhatPassesChange) {
  const Outcome outcome =
      cgc({"opt", "-", "--passes", "cse,cse", "--print-changed"}, {.input = kGraph});
  EXPECT_EQ(count(outcome.err, "-  %1 = aten.relu(%x)"), 1u) << outcome.err;
  EXPECT_EQ(count(outcome.err, "; cse on @f: no change"), 1u) << outcome.err;
}

/// Attention without a dimension of heads, so that select-attention leaves it.
constexpr const char *kAttention =
    "graph @f(%q: f32[2,5,4]) {\n"
    "  %0 = aten.scaled_dot_product_attention(%q, %q, %q) : f32[2,5,4] "
    "loc(\"transformer.py\":918 \"visual.attn\")\n"
    "  output %0\n"
    "}\n";

TEST_F(Opt, ExplainsWhatAPassLeaves) {
  const Outcome outcome = cgc({"opt", "-", "--explain", "select-attention"}, {.input = kAttention});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "; select-attention on @f\n"
                         "transformer.py:918: remark: selectAttention: the result is not "
                         "[B, H, L, D]\n"
                         "  %0 = aten.scaled_dot_product_attention(%q, %q, %q) : f32[2,5,4]\n"
                         "  in module 'visual.attn'\n"
                         "select-attention: 1 candidate does not match\n");
  EXPECT_EQ(count(outcome.out, "scaled_dot_product_attention"), 1u);

  const Outcome json =
      cgc({"opt", "-", "--explain", "select-attention", "--json"}, {.input = kAttention});
  EXPECT_EQ(json.err, "");
  const auto explain = parseJson(json, "opt")["explain"];
  EXPECT_EQ(explain["pass"], "select-attention");
  ASSERT_EQ(explain["failures"].size(), 1u);
  const auto &failure = explain["failures"][0];
  EXPECT_EQ(failure["pattern"], "selectAttention");
  EXPECT_EQ(failure["graph"], "f");
  EXPECT_EQ(failure["file"], "transformer.py");
  EXPECT_EQ(failure["line"], 918);
  EXPECT_EQ(failure["module"], "visual.attn");
  EXPECT_EQ(failure["reason"], "the result is not [B, H, L, D]");
}

TEST_F(Opt, ExplainsOnlyPassesWithPatternsThatRun) {
  expectError(cgc({"opt", "-", "--explain", "cse"}, {.input = kAttention}), 2,
              {"pass 'cse' has no patterns to explain; these have: canonicalize, "
               "simplify-gradients, select-gradients, select-updates, select-train-norm"});
  expectError(cgc({"opt", "-", "--explain", "select-atention"}, {.input = kAttention}), 2,
              {"no pass 'select-atention'", "select-attention"});
  expectError(
      cgc({"opt", "-", "--passes", "dce", "--explain", "select-rows"}, {.input = kAttention}), 2,
      {"pass 'select-rows' is to be explained and does not run: the pipeline is dce"});
}

TEST_F(Opt, TimesPasses) {
  const Outcome outcome = cgc({"opt", "-", "--passes", "cse", "--time-passes"}, {.input = kGraph});
  EXPECT_EQ(count(outcome.err, "runs  changed  pass"), 1u) << outcome.err;
}

TEST_F(Opt, VerifiesTheRoundTrip) {
  const Outcome outcome =
      cgc({"opt", "-", "--verify-roundtrip", "--passes", "cse"}, {.input = kGraph});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(count(outcome.out, "aten.relu("), 1u);
}

TEST_F(Opt, AFailureLeavesAReproducerThatFailsAgain) {
  // canonicalize needs types, so this pipeline has a bug.
  const std::string text = "graph @f(%x: f32[2]) -> dynamic {\n  %0 = aten.relu(%x) : dynamic\n"
                           "  output %0\n}\n";
  const Outcome failed = cgc({"opt", "-", "--passes", "cse,canonicalize,dce", "--target", "cuda",
                              "--crash-reproducer", "crash.cgir", "-o", "out.cgir"},
                             {.input = text});
  expectError(failed, 2, {"pass 'canonicalize'", "cgc opt --run-reproducer crash.cgir"});
  EXPECT_EQ(files(), std::vector<std::string>{"crash.cgir"});
  const std::string reproducer = readFile(folder / "crash.cgir");
  for (const char *line :
       {"; pipeline: canonicalize,dce\n", "; target: cuda\n", "; producer: cgc "})
    EXPECT_EQ(count(reproducer, line), 1u) << reproducer;
  expectError(cgc({"opt", "--run-reproducer", "crash.cgir"}), 2,
              {"pass 'canonicalize'", "run the pass 'specialize' first"});
  // With the bug fixed, it says that no pass failed.
  writeFile(folder / "fixed.cgir", reproducer.substr(0, reproducer.find("graph @f")) + kGraph);
  const Outcome fixed = cgc({"opt", "--run-reproducer", "fixed.cgir"});
  EXPECT_EQ(fixed.status, 0) << fixed.err;
  EXPECT_EQ(count(fixed.err, "no pass failed"), 1u) << fixed.err;
}

TEST_F(Opt, WithoutAFailureThereIsNoReproducer) {
  const Outcome outcome =
      cgc({"opt", "-", "--passes", "cse", "--crash-reproducer", "crash.cgir"}, {.input = kGraph});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(files().empty());
  expectError(cgc({"opt", "-", "--passes", "cse", "--crash-reproducer", "no/crash.cgir"},
                  {.input = kGraph}),
              1, {"no/crash.cgir"});
  writeFile(folder / "in.cgir", kGraph);
  expectError(cgc({"opt", "in.cgir", "--crash-reproducer", "in.cgir"}), 2, {"overwritten"});
  expectError(cgc({"opt", "in.cgir", "--run-reproducer"}), 3, {"'in.cgir' is no reproducer"});
}

TEST_F(Opt, NothingThatItReadsIsOverwritten) {
  writeFile(folder / "in.cgir", kGraph);
  writeFile(folder / "lib.so", "code");
  const auto refuse = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"opt", "in.cgir", "--passes", "cse", "--pass-plugin", "lib.so"});
    expectError(cgc(more), 2, {"overwritten"});
    EXPECT_EQ(readFile(folder / "lib.so"), "code");
    EXPECT_EQ(readFile(folder / "in.cgir"), kGraph);
  };
  refuse({"--crash-reproducer", "lib.so"});
  refuse({"-o", "lib.so"});
  refuse({"-o", "in.cgir", "--crash-reproducer", "in.cgir"});
  refuse({"-o", "out.cgir", "--crash-reproducer", "./out.cgir"});
  refuse({"-o", "dump", "--dump-dir", "dump"});
  refuse({"-o", "01-cse.f.cgir", "--dump-dir", "."});
  EXPECT_EQ(files(), (std::vector<std::string>{"in.cgir", "lib.so"}));
  // The input itself may be replaced at the end.
  EXPECT_EQ(cgc({"opt", "in.cgir", "--passes", "cse", "-o", "in.cgir"}).status, 0);
  EXPECT_EQ(count(readFile(folder / "in.cgir"), "aten.relu("), 1u);
  // An input in a dump folder cannot be read while that folder is written.
  EXPECT_EQ(cgc({"opt", "in.cgir", "--passes", "cse", "--dump-dir", "dump"}).status, 0);
  expectError(cgc({"opt", "dump/01-cse.f.cgir", "--passes", "cse", "--dump-dir", "dump"}), 2,
              {"dump/01-cse.f.cgir' would be overwritten", "--dump-dir"});
}

TEST_F(Opt, OnlyAReproducerGivesWayToAReproducer) {
  writeFile(folder / "mine.cgir", kGraph);
  expectError(
      cgc({"opt", "-", "--passes", "cse", "--crash-reproducer", "mine.cgir"}, {.input = kGraph}), 2,
      {"'mine.cgir' is no reproducer", "--crash-reproducer"});
  EXPECT_EQ(readFile(folder / "mine.cgir"), kGraph);
  const std::string untyped = "graph @f(%x: f32[2]) -> dynamic {\n"
                              "  %0 = aten.relu(%x) : dynamic\n  output %0\n}\n";
  const auto leave = [&](const std::string &passes, const std::string &text) {
    return cgc({"opt", "-", "--passes", passes, "--crash-reproducer", "crash.cgir"},
               {.input = text});
  };
  EXPECT_EQ(leave("canonicalize", untyped).status, 2);
  const std::string reproducer = readFile(folder / "crash.cgir");
  // No pass has run, so the old reproducer stays and is not reported as new.
  for (const Outcome &outcome : {leave("sce", kGraph), leave("cse", "graph @f( {")}) {
    EXPECT_NE(outcome.status, 0);
    EXPECT_EQ(count(outcome.err, "holds the IR"), 0u) << outcome.err;
    EXPECT_EQ(readFile(folder / "crash.cgir"), reproducer);
  }
  EXPECT_EQ(leave("cse", kGraph).status, 0);
  EXPECT_FALSE(fs::exists(folder / "crash.cgir"));
}

TEST_F(Opt, AReproducerMayNotSayWhoWroteIt) {
  writeFile(folder / "r.cgir",
            std::string("; cgc reproducer; run it: cgc opt --run-reproducer FILE\n"
                        "; pipeline: cse\n; target: cpu\n") +
                kGraph);
  const Outcome outcome = cgc({"opt", "--run-reproducer", "r.cgir"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(count(outcome.err, "'r.cgir' is by an unknown version; this is cgc "), 1u)
      << outcome.err;
}

TEST_F(Opt, SaysAllThatIsWrongWithATextAndWhere) {
  const Outcome outcome = cgc({"opt", "-"}, {.input = "graph @f(%x: f32[2]) {\n"
                                                      "  %0 = aten.rellu(%x) : f32[2]\n"
                                                      "  %1 = aten.exp(%y) : f32[2]\n"
                                                      "  output %x %1\n}\n"});
  expectError(outcome, 3,
              {"<stdin>:2:8: error: no op 'aten.rellu'; did you mean 'aten.relu'?\n"
               "    %0 = aten.rellu(%x) : f32[2]\n"
               "         ^\n",
               "<stdin>:3:17: error", "<stdin>:4:13: error"});
  expectError(cgc({"opt", "-"}, {.input = "graph @f(%x: f32[2]) {\n"
                                          "  %0 = aten.relu(%x) : f32[3]\n"
                                          "  output %0\n}\n"}),
              3, {"<stdin>:2:8: error", "\n         ^\n"});
}

TEST_F(Opt, RefusesWhatIsWrong) {
  expectError(cgc({"opt", "-", "--passes", "fold{limt=1}"}, {.input = kGraph}), 2,
              {"no option 'limt'", "did you mean 'limit'?"});
  expectError(cgc({"opt", "-", "--pases", "cse"}, {.input = kGraph}), 2,
              {"no option '--pases'; did you mean '--passes'?"});
  expectError(cgc({"opt", "-", "--passes", "sce"}, {.input = kGraph}), 2,
              {"'sce'", "did you mean"});
  expectError(cgc({"opt", "-", "--passes", "cse"}, {.input = "graph @f( {"}), 3, {"<stdin>:1"});
  expectError(cgc({"opt", "missing.cgir", "--passes", "cse"}), 3, {"missing.cgir"});
  expectError(cgc({"opt", "-", "--passes", "cse", "-o", "no/out.cgir"}, {.input = kGraph}), 1,
              {"no/out.cgir"});
  EXPECT_TRUE(files().empty());
}

} // namespace
} // namespace cgc::e2e
