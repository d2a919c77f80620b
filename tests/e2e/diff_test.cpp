// cgc diff: two files of IR text, two plans.
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
       {"~ precision: keep\n> precision: f16\n", "\nentry encode_image, image[1,3,32,32]: ",
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
