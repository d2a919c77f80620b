// cgc opt: passes on IR text.
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
  expectError(outcome, 3, {"<stdin>:2", "?[31m?xxx"});
  EXPECT_LT(outcome.err.size(), 2000u);
  for (const char c : outcome.err)
    EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << int(c);
}

TEST_F(Opt, RefusesWhatIsWrong) {
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
