// Tests of cgc diff: it compares two files of IR text, or two plans.
#include "tool.h"

namespace cgc::e2e {
namespace {

class Diff : public ToolTest {
protected:
  static constexpr const char *kBefore = "graph @f(%x: f32[2,3]) -> f32[2,3] {\n"
                                         "  %0 = aten.relu(%x) : f32[2,3]\n"
                                         "  %1 = aten.gelu(%0) : f32[2,3]\n"
                                         "  %2 = aten.mul(%1, 2) : f32[2,3]\n"
                                         "  output %2\n}\n";
  static constexpr const char *kAfter = "graph @f(%x: f32[2,3]) -> f32[2,3] {\n"
                                        "  %a = aten.relu(%x) : f32[2,3]\n"
                                        "  %b = aten.silu(%a) : f32[2,3]\n"
                                        "  %c = aten.mul(%b, 3) : f32[2,3]\n"
                                        "  output %c\n}\n";
};

TEST_F(Diff, ShowsWhatWasAddedRemovedAndChanged) {
  writeFile(folder / "a.cgir", kBefore);
  writeFile(folder / "b.cgir", kAfter);
  const Outcome outcome = cgc({"diff", "a.cgir", "b.cgir"});
  EXPECT_EQ(outcome.status, 5);
  EXPECT_EQ(outcome.out, "graph @f: 1 removed, 1 added, 1 changed, 3 equal\n"
                         "- %1 = aten.gelu(%0) : f32[2,3]\n"
                         "+ %b = aten.silu(%a) : f32[2,3]\n"
                         "~ %2 = aten.mul(%1, 2) : f32[2,3]\n"
                         "> %c = aten.mul(%b, 3) : f32[2,3]\n"
                         "\n"
                         "op         removed  added\n"
                         "aten.gelu  1        0\n"
                         "aten.silu  0        1\n\n");
  EXPECT_NE(outcome.err.find("'a.cgir' and 'b.cgir' differ"), std::string::npos) << outcome.err;
}

TEST_F(Diff, PrintsJson) {
  writeFile(folder / "a.cgir", kBefore);
  writeFile(folder / "b.cgir", kAfter);
  const Outcome outcome = cgc({"diff", "a.cgir", "b.cgir", "--json"});
  EXPECT_EQ(outcome.status, 5);
  const auto json = parseJson(outcome, "diff");
  EXPECT_EQ(json["before"], "a.cgir");
  EXPECT_EQ(json["facts"], nlohmann::json::array());
  ASSERT_EQ(json["lists"].size(), 1u);
  const auto &list = json["lists"][0];
  EXPECT_EQ(list["before"], "graph @f");
  EXPECT_EQ(list["after"], "graph @f");
  EXPECT_EQ(list["equal"], 3);
  ASSERT_EQ(list["differences"].size(), 3u);
  EXPECT_EQ(list["differences"][0]["kind"], "removed");
  EXPECT_EQ(list["differences"][0]["before"]["op"], "aten.gelu");
  EXPECT_EQ(list["differences"][0]["after"], nullptr);
  EXPECT_EQ(list["differences"][1]["kind"], "added");
  EXPECT_EQ(list["differences"][2]["kind"], "changed");
  EXPECT_EQ(list["differences"][2]["after"]["text"], "%c = aten.mul(%b, 3) : f32[2,3]");
  const Outcome equal = cgc({"diff", "a.cgir", "a.cgir", "--json"});
  EXPECT_EQ(equal.status, 0);
  EXPECT_EQ(parseJson(equal, "diff")["lists"], nlohmann::json::array());
  const Outcome missing = cgc({"diff", "a.cgir", "missing.cgir", "--json"});
  EXPECT_EQ(missing.status, 3);
  EXPECT_EQ(parseJson(missing, "error")["code"], "invalid_file");
}

TEST_F(Diff, PrintsJsonOfPlans) {
  makePlan({"--entry", "encode_text"});
  fs::rename(folder / "plan.cgplan", folder / "a.cgplan");
  makePlan({"--entry", "encode_image"});
  const auto json = parseJson(cgc({"diff", "a.cgplan", "plan.cgplan", "--json"}), "diff");
  ASSERT_EQ(json["lists"].size(), 1u); // One bucket is compared with one bucket.
  EXPECT_EQ(json["lists"][0]["before"], "entry encode_text, text[1,16]");
  EXPECT_EQ(json["lists"][0]["after"], "entry encode_image, image[1,3,32,32]");
  EXPECT_FALSE(json["facts"].empty());
}

TEST_F(Diff, EqualFilesAreEqual) {
  writeFile(folder / "a.cgir", kBefore);
  const Outcome outcome = cgc({"diff", "a.cgir", "a.cgir"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "no difference\n");
}

TEST_F(Diff, ComparesPlans) {
  makePlan();
  fs::rename(folder / "plan.cgplan", folder / "a.cgplan");
  makePlan({"--precision", "fp16"});
  EXPECT_EQ(cgc({"diff", "a.cgplan", "a.cgplan"}).out, "no difference\n");
  const Outcome outcome = cgc({"diff", "a.cgplan", "plan.cgplan"});
  EXPECT_EQ(outcome.status, 5) << outcome.err;
  for (const char *text :
       {"~ precision: keep\n> precision: fp16\n", "\nentry encode_image, image[1,3,32,32]: ",
        "~ input image: f32[1,3,32,32]\n> input image: f16[1,3,32,32]\n"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
}

TEST_F(Diff, ComparesTheRecordsOfOneEntry) {
  makePlan({"--entry", "encode_text"});
  fs::rename(folder / "plan.cgplan", folder / "a.cgplan");
  makePlan({"--entry", "encode_text", "--passes",
            "inline,specialize,canonicalize,fold,cse,dce,select-linear,fold,cse,dce"});
  const Outcome outcome = cgc({"diff", "a.cgplan", "plan.cgplan"});
  EXPECT_EQ(outcome.status, 5) << outcome.err;
  EXPECT_NE(outcome.out.find("\nentry encode_text, text[1,16]: "), std::string::npos)
      << outcome.out;
}

TEST_F(Diff, RefusesWhatItCannotCompare) {
  makePlan();
  writeFile(folder / "a.cgir", kBefore);
  writeFile(folder / "bad.cgir", "graph @f( {\n");
  expectError(cgc({"diff", "a.cgir", "plan.cgplan"}), 2, {"of two kinds"});
  expectError(cgc({"diff", "a.cgir", models() / "tiny_fp32.pt"}), 3, {"a TorchScript module"});
  expectError(cgc({"diff", "a.cgir", "bad.cgir"}), 3, {"bad.cgir:1"});
  expectError(cgc({"diff", "a.cgir", "missing.cgir"}), 3, {"missing.cgir"});
}

} // namespace
} // namespace cgc::e2e
