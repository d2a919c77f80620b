// DOT: deterministic output, escaping, and clusters nested by module path.
#include "ir_test_util.h"

#include "ir/text/dot.h"
#include "support/dot_graph.h"

#include "llvm/Support/JSON.h"

namespace cgc::ir {
namespace {

using testing::HasSubstr;

std::string dot(const Module &module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeDot(os, *module.graphs().front());
  return text;
}

constexpr const char *kText = R"(
  graph @f(%x: f32[2,4] loc("m.py":1), %"a\"b": dynamic) {
    %w = get_attr @proj.w : f32[4,4] loc("m.py":2 "visual.proj")
    %0 = aten.linear(%x, %w) : f32[2,4] loc("m.py":2 "visual.proj")
    %a, %b = aten.chunk(%0) {chunks=2} : f32[1,4], f32[1,4] loc("m.py":3 "visual")
    %1 = aten.fallback "aten::weird(Tensor self, str s=\"\\\\\") -> Tensor" (%b, %"a\"b") : dynamic
    call_module @side.effect(%1)
    output %1, %a
  })";

TEST(Dot, IsDeterministic) {
  EXPECT_EQ(dot(*parsed(kText)), dot(*parsed(kText)));
}

TEST(Dot, NodesAreNamedByTheirResults) {
  std::string text = dot(*parsed(kText));
  EXPECT_THAT(text, HasSubstr("\"%x\" -> \"%0\" [label=\"f32[2,4]\"]"));
  EXPECT_THAT(text, HasSubstr("\"%a\" -> \"%1\" [label=\"f32[1,4]\"]"));
  EXPECT_THAT(text, HasSubstr("\"%1\" -> \"#6\""));
  EXPECT_THAT(text, testing::Not(HasSubstr("0x")));
}

TEST(Dot, StringsAreEscaped) {
  std::string text = dot(*parsed(kText));
  EXPECT_THAT(text, HasSubstr(R"("%a\"b" [label="a\"b")"));
  EXPECT_THAT(text, HasSubstr(R"([label="aten::weird")"));
  auto backslash = parsed("graph @f(%\"\\\\\": f32[2]) { output %\"\\\\\" }");
  EXPECT_THAT(dot(*backslash), HasSubstr(R"("%\\" [label="\\")"));
}

TEST(Dot, WhatXmlCannotHoldIsNotInTheTitle) {
  EXPECT_EQ(markupText("a<b>&\"\x01\x7f"), "a&lt;b&gt;&amp;&quot;??");
  EXPECT_EQ(markupText("\u00d7"), "\u00d7");
  EXPECT_EQ(markupText("\xff<"), "?&lt;");
}

TEST(Dot, WhatIsNotUtf8IsReplacedInStrings) {
  DotGraph graph("t\xff");
  graph.addNode({.id = "\xfe", .label = "a\xff\x01\nb", .path = "\u00d7"});
  graph.addNode({.id = "ok", .label = "\u00d7\xff", .path = "m\xff"});
  std::string text;
  llvm::raw_string_ostream os(text);
  graph.write(os);
  EXPECT_TRUE(llvm::json::isUTF8(text));
  EXPECT_THAT(text, HasSubstr("\"?\" [label=\"a??\\nb\""));
  EXPECT_THAT(text, HasSubstr("cluster_\u00d7"));
}

TEST(Dot, ClustersNestByModulePath) {
  std::string text = dot(*parsed(kText));
  size_t outer = text.find("subgraph \"cluster_visual\" {");
  size_t inner = text.find("subgraph \"cluster_visual.proj\" {");
  size_t linear = text.find("\"%0\" [label=\"linear\\nproj.w f32[4,4]\"");
  size_t input = text.find("\"%x\" [label=\"x\"");
  ASSERT_NE(linear, std::string::npos);
  EXPECT_LT(input, outer);
  EXPECT_LT(outer, inner);
  EXPECT_LT(inner, linear);
  EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}'));
}

TEST(Dot, ParametersStandInTheLabelsOfTheirReaders) {
  std::string text = dot(*parsed(kText));
  EXPECT_THAT(text, HasSubstr("[label=\"linear\\nproj.w f32[4,4]\""));
  EXPECT_THAT(text, testing::Not(HasSubstr("\"%w\"")));
  // A parameter that is an output is a node of its own.
  text = dot(*parsed("graph @f() {\n  %w = get_attr @w : f32[2]\n  output %w\n}"));
  EXPECT_THAT(text, HasSubstr("\"%w\" -> \"#1\" [label=\"f32[2]\"]"));
}

TEST(Dot, LabelsShowArgumentsThatAreNotDefaults) {
  EXPECT_THAT(dot(*parsed(kText)), HasSubstr("[label=\"chunk\\nchunks=2\""));
}

/// Returns a chain of `blocks` equal blocks of 20 ops each, in modules `tower.layers.<i>`, and a
/// head.
std::string blocks(int blocks, const char *lastOp = "relu") {
  std::string text = "graph @f(%x: f32[2]) -> f32[2] {\n";
  std::string previous = "%x";
  for (int i = 0; i < blocks; ++i)
    for (int k = 0; k < 20; ++k) {
      const std::string name = "%b" + std::to_string(i) + "_" + std::to_string(k);
      const bool last = i + 1 == blocks && k == 19;
      text += "  " + name + " = aten." + (last ? lastOp : "relu") + "(" + previous +
              ") : f32[2] loc(\"m.py\":1 \"tower.layers." + std::to_string(i) + ".act\")\n";
      previous = name;
    }
  return text + "  %h = aten.exp(" + previous +
         ") : f32[2] loc(\"m.py\":2 \"head\")\n  output %h\n}";
}

TEST(Dot, RepeatedBlocksOfALargeGraphAreDrawnOnce) {
  const std::string text = dot(*parsed(blocks(12)));
  EXPECT_THAT(text, HasSubstr("0 \u2026 11   \u00d7 12"));
  EXPECT_THAT(text, HasSubstr("\"%b0_19\" ["));
  EXPECT_THAT(text, testing::Not(HasSubstr("\"%b1_0\"")));
  // Edges into the first block, from it to the next, and from the last to the head.
  EXPECT_THAT(text, HasSubstr("\"%x\" -> \"%b0_0\" [label=\"f32[2]\"]"));
  EXPECT_THAT(text, HasSubstr("\"%b0_19\" -> \"%b0_0\" [label=\"f32[2]\", style=dashed"));
  EXPECT_THAT(text, HasSubstr("\"%b0_19\" -> \"%h\" [label=\"f32[2]\"]"));
  EXPECT_EQ(text, dot(*parsed(blocks(12))));
}

TEST(Dot, ABlockThatDiffersIsDrawnForItself) {
  const std::string text = dot(*parsed(blocks(12, "gelu")));
  EXPECT_THAT(text, HasSubstr("0 \u2026 10   \u00d7 11"));
  EXPECT_THAT(text, HasSubstr("\"%b11_19\" [label=\"gelu\""));
}

TEST(Dot, BlocksThatComputeOtherTensorsAreNotEqual) {
  // From the third block on, in half precision.
  std::string text = blocks(6);
  const size_t third = text.find("  %b3_0"), end = text.find("  %h");
  std::string rest = text.substr(third, end - third);
  for (size_t at = rest.find("f32"); at != std::string::npos; at = rest.find("f32"))
    rest.replace(at, 3, "f16");
  rest.replace(rest.find("%b2_19"), 6, "%half");
  text = text.substr(0, third) + "  %half = aten.to(%b2_19) {dtype=f16} : f16[2]\n" + rest +
         "  %h = aten.to(%b5_19) {dtype=f32} : f32[2]\n  output %h\n}";
  const std::string drawing = dot(*parsed(text));
  EXPECT_THAT(drawing, HasSubstr("0 \u2026 2   \u00d7 3"));
  EXPECT_THAT(drawing, HasSubstr("3 \u2026 5   \u00d7 3"));
}

TEST(Dot, OnlyNumberedBlocksAreDrawnAsOne) {
  std::string text = blocks(4);
  for (int i = 0; i < 4; ++i) {
    const std::string number = "layers." + std::to_string(i);
    for (size_t at = text.find(number); at != std::string::npos; at = text.find(number))
      text.replace(at, number.size(), std::string("layers.") + char('a' + i));
  }
  EXPECT_THAT(dot(*parsed(text)), testing::Not(HasSubstr("\u00d7")));
}

/// Returns a graph of `nodes` nodes, of which 40 are in two equal blocks.
std::string drawn(unsigned nodes) {
  DotGraph graph("g");
  for (unsigned i = 0; i < nodes; ++i)
    graph.addNode({.id = std::to_string(i),
                   .label = "relu",
                   .path = i < 40 ? "layers." + std::to_string(i / 20) : "",
                   .signature = "relu"});
  std::string text;
  llvm::raw_string_ostream os(text);
  graph.write(os);
  return text;
}

TEST(Dot, RepeatedBlocksAreDrawnOnceFrom60NodesOn) {
  EXPECT_THAT(drawn(59), testing::Not(HasSubstr("\u00d7")));
  EXPECT_THAT(drawn(60), HasSubstr("0 \u2026 1   \u00d7 2"));
}

TEST(Dot, PathsOfHostileDepthDoNotRecurseWithoutEnd) {
  std::string path;
  for (int i = 0; i < 200000; ++i)
    path += "a.";
  auto module = parsed("graph @f(%x: f32[2] loc(\"\":0 \"" + path + "\")) { output %x }");
  EXPECT_THAT(dot(*module), HasSubstr("\"%x\" [label=\"x\""));
}

} // namespace
} // namespace cgc::ir
