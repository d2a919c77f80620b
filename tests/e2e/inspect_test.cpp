// Tests of cgc inspect: every kind of file, drawings, and JSON.
#include "tests/paths.h"
#include "tool.h"

namespace cgc::e2e {
namespace {

class Inspect : public ToolTest {};

TEST_F(Inspect, ShowsAPlan) {
  makePlan({"--batch", "1,2"});
  const Outcome outcome = cgc({"inspect", "plan.cgplan"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char *text :
       {"plan for cpu", "encode_image", "image=f32[2,3,32,32]", "text=i64[1,16]", "aten::"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
  const auto json = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  EXPECT_EQ(json["bytes"], fs::file_size(folder / "plan.cgplan"));
  EXPECT_LE(json["weight_bytes"], json["bytes"]);
  size_t records = 0;
  const auto &bucket = json["entries"][0]["buckets"][0];
  for (const auto &[name, count] : bucket["records_by_kind"].items())
    records += count.get<size_t>();
  EXPECT_EQ(records, bucket["records"]);
}

TEST_F(Inspect, SaysWhichRowsDependOnEachOther) {
  const Outcome compiled =
      cgc({"compile", models() / "logits.pt", "-o", "plan.cgplan", "--target", "cpu", "--input",
           "image=f32[1,8]", "--input", "text=f32[1,4]", "--batch", "1,3"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const std::string text = cgc({"inspect", "plan.cgplan"}).out;
  for (const char *part :
       {"encode_image: dimension 0 of image, 0 of ", "; rows are independent\n",
        "forward: dimension 0 of image, 0 of text; rows depend on each other: ",
        ": aten.matmul at ", "make_models.py:", ": it combines different rows\n", "expected, us"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in:\n" << text;
  const auto json = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  for (const auto &entry : json["entries"]) {
    const bool isTower = entry["name"] == "encode_image";
    EXPECT_EQ(entry["rows"]["independent"], isTower);
    EXPECT_EQ(entry["rows"].contains("op"), !isTower);
    for (const auto &bucket : entry["buckets"]) {
      EXPECT_EQ(bucket["inputs"][0]["batch_dim"], 0);
      EXPECT_EQ(bucket["outputs"][0].contains("batch_dim"), isTower);
      EXPECT_GT(bucket["expected_us"], 0);
      EXPECT_EQ(bucket["measured"], false);
    }
  }
}

TEST_F(Inspect, SaysWhatAPlanNeedsAtRunTime) {
  makePlan({"--batch", "1,2"});
  const auto json = [&] { return parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan"); };
  const auto needsOf = [&] { return json()["requirements"]; };
  const auto cpu = json();
  EXPECT_EQ(cpu["requirements"]["gpu"], nullptr);
  EXPECT_EQ(cpu["requirements"]["cublaslt"], false);
  EXPECT_TRUE(cpu["requirements"]["op_libraries"].empty());
  ASSERT_EQ(cpu["requirements"]["libtorch"].size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cpu["requirements"]["libtorch"][i]["entry"], cpu["entries"][i]["name"]);
    auto records = cpu["entries"][i]["buckets"][0]["records_by_kind"];
    records.erase("memcpy");
    EXPECT_EQ(cpu["requirements"]["libtorch"][i]["records"], records);
  }

  // A cuda plan of the whole model needs no LibTorch; one without cgc's fused ops does.
  const auto compile = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"compile", models() / "tiny_fp16.pt", "-o", "plan.cgplan",
                                          "--input", "text=i64[1,16]"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cgc(arguments);
  };
  Outcome outcome = compile({"--require-native"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("needs at run time:\n    a GPU: "), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("LibTorch"), std::string::npos) << outcome.out;
  EXPECT_TRUE(needsOf()["libtorch"].empty());
  EXPECT_TRUE(needsOf()["gpu"].is_string());
  outcome = compile({"-O0", "--arch", "sm_80"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto cuda = needsOf();
  EXPECT_EQ(cuda["gpu"], "sm_80");
  ASSERT_EQ(cuda["libtorch"].size(), 1u) << cuda;
  for (const std::string &text : {outcome.out, cgc({"inspect", "plan.cgplan"}).out})
    for (const char *part : {"a GPU: sm_80 or newer", "LibTorch 2.11.0, for these records:",
                             "encode_text: ", "aten::_scaled_dot_product_attention_math"})
      EXPECT_NE(text.find(part), std::string::npos) << part << " in:\n" << text;

  const std::string before = readFile(folder / "plan.cgplan");
  const Outcome refused = compile({"-O0", "--require-native"});
  expectError(refused, 4,
              {"--require-native: the plan needs LibTorch at run time",
               "encode_text: 2 aten::_scaled_dot_product_attention_math, the first at ",
               "to do: "});
  EXPECT_EQ(readFile(folder / "plan.cgplan"), before);
  expectError(compile({"--target", "cpu", "--require-native"}), 4, {"--target cuda"});
  EXPECT_EQ(readFile(folder / "plan.cgplan"), before);
}

TEST_F(Inspect, ShowsATorchScriptFile) {
  const Outcome outcome = cgc({"inspect", models() / "tiny_fp32.pt"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char *text : {"CLIP", "encode_text", "image, text", "aten."})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
  const auto json = parseJson(cgc({"inspect", models() / "tiny_fp32.pt", "--json"}), "torchscript");
  EXPECT_EQ(json["methods"].size(), 3u);
}

TEST_F(Inspect, ShowsIrText) {
  writeFile(
      folder / "g.cgir",
      "graph @f(%x: f32[2,3]) -> f32[2,3] {\n  %0 = aten.relu(%x) : f32[2,3]\n  output %0\n}\n");
  const Outcome outcome = cgc({"inspect", "g.cgir", "--json", "--dot", "g.dot"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "ir");
  EXPECT_EQ(json["ops"]["aten.relu"], 1);
  EXPECT_NE(readFile(folder / "g.dot").find("digraph"), std::string::npos);
}

TEST_F(Inspect, GoesByContentNotByName) {
  makePlan();
  fs::rename(folder / "plan.cgplan", folder / "plan.pt");
  parseJson(cgc({"inspect", "plan.pt", "--json"}), "plan");
}

TEST_F(Inspect, DrawsAPlan) {
  makePlan();
  const Outcome outcome = cgc({"inspect", "plan.cgplan", "--dot", "p.dot", "--svg", "p.svg"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(readFile(folder / "p.svg").find("<svg"), std::string::npos);
  const std::string dot = readFile(folder / "p.dot");
  EXPECT_NE(dot.find("cluster_encode_text"), std::string::npos);
  // Records are nested in their modules, and edges have shapes.
  EXPECT_NE(dot.find("cluster_encode_text.ln_final"), std::string::npos) << dot;
  EXPECT_NE(dot.find("[label=\"i64[1,16]\"];"), std::string::npos) << dot;
  // Every input has a reader and every output has a writer.
  for (const char *edge : {"\"encode_text.in0\" ->", "-> \"encode_text.out0\"",
                           "\"forward.in1\" ->", "-> \"forward.out2\""})
    EXPECT_NE(dot.find(edge), std::string::npos) << edge;
  // The drawing is deterministic.
  ASSERT_EQ(cgc({"inspect", "plan.cgplan", "--dot", "again.dot"}).status, 0);
  EXPECT_EQ(readFile(folder / "again.dot"), dot);
}

TEST_F(Inspect, ThePictureOfAPlanHasTheUseOfItsArena) {
  makePlan();
  ASSERT_EQ(cgc({"inspect", "plan.cgplan", "--entry", "encode_text", "--svg", "p.svg"}).status, 0);
  const std::string svg = readFile(folder / "p.svg");
  for (const char *text : {"encode_text (text=i64[1,16]): arena", "time: record of the bucket",
                           "offset in the arena", "at offset 0\n", "</svg>\n</svg>\n"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  EXPECT_EQ(svg.find("encode_image"), std::string::npos);
  ASSERT_EQ(cgc({"inspect", "plan.cgplan", "--entry", "encode_text", "--svg", "q.svg"}).status, 0);
  EXPECT_EQ(readFile(folder / "q.svg"), svg);
}

TEST_F(Inspect, SaysThatTheWeightsAreNotVerified) {
  makePlan();
  std::string plan = readFile(folder / "plan.cgplan");
  plan.back() = static_cast<char>(plan.back() ^ 1);
  writeFile(folder / "plan.cgplan", plan);
  const Outcome outcome = cgc({"inspect", "plan.cgplan"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("The weights are not"), std::string::npos) << outcome.out;
  EXPECT_EQ(parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan")["verified"], "metadata");
  expectError(cgc({"run", "plan.cgplan", "--entry", "encode_text", "--input", "text=random:0"}), 3,
              {"plan.cgplan"});
}

TEST_F(Inspect, DrawsToStandardOutput) {
  makePlan();
  const Outcome outcome = cgc({"inspect", "plan.cgplan", "--dot", "-"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("digraph")) << outcome.out;
  EXPECT_TRUE(outcome.out.ends_with("}\n")) << outcome.out;
  EXPECT_EQ(files(), std::vector<std::string>{"plan.cgplan"});
}

TEST_F(Inspect, NeverOverwritesWhatItReadsOrDraws) {
  makePlan();
  const std::string before = readFile(folder / "plan.cgplan");
  for (const char *option : {"--dot", "--svg"})
    expectError(cgc({"inspect", "plan.cgplan", option, "./plan.cgplan"}), 2,
                {"plan.cgplan", "overwritten", option});
  EXPECT_TRUE(readFile(folder / "plan.cgplan") == before);
  expectError(cgc({"inspect", "plan.cgplan", "--dot", "same", "--svg", "./same"}), 2, {"same"});
  EXPECT_FALSE(fs::exists(folder / "same"));
}

TEST_F(Inspect, AnEntryIsForADrawing) {
  makePlan();
  expectError(cgc({"inspect", "plan.cgplan", "--entry", "encode_text"}), 2, {"--dot", "--svg"});
}

TEST_F(Inspect, RefusesUnknownEntries) {
  makePlan();
  expectError(cgc({"inspect", "plan.cgplan", "--entry", "encode_audio", "--dot", "-"}), 2,
              {"no entry 'encode_audio'", "encode_text"});
}

TEST_F(Inspect, DrawsAModel) {
  const Outcome outcome =
      cgc({"inspect", models() / "tiny_fp32.pt", "--entry", "encode_text", "--svg", "m.svg"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(readFile(folder / "m.svg").find("embedding"), std::string::npos);
}

TEST_F(Inspect, SaysWhereIrTextIsWrong) {
  writeFile(
      folder / "g.cgir",
      "graph @f(%x: f32[2,3]) -> f32[2,3] {\n  %0 = aten.frob(%x) : f32[2,3]\n  output %0\n}\n");
  expectError(cgc({"inspect", "g.cgir"}), 3, {"g.cgir:2", "aten.frob"});
}

TEST_F(Inspect, SaysThatGraphvizIsMissing) {
  makePlan();
  const std::string tool = test::buildDir().string() + "/bin/cgc";
  expectError(runProgram({"env", "PATH=/nowhere", tool, "inspect", "plan.cgplan", "--svg", "p.svg"},
                         folder),
              1, {"Graphviz"});
  EXPECT_EQ(files(), std::vector<std::string>{"plan.cgplan"});
}

TEST_F(Inspect, OpensNoLibTorchForAPlan) {
  makePlan();
  const std::string tool = test::buildDir().string() + "/bin/cgc";
  const Outcome outcome =
      runProgram({"env", "LD_DEBUG=libs", tool, "inspect", "plan.cgplan"}, folder);
  ASSERT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("libc.so"), std::string::npos);
  EXPECT_EQ(outcome.err.find("torch"), std::string::npos);
}

} // namespace
} // namespace cgc::e2e
