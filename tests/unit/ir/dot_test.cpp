// DOT: deterministic, escaped, nested by module path.
#include "ir_test_util.h"

#include "ir/dot.h"

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
  EXPECT_THAT(text, HasSubstr("\"%a\" -> \"%1\" [label=\"%b f32[1,4]\"]"));
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

TEST(Dot, ClustersNestByModulePath) {
  std::string text = dot(*parsed(kText));
  size_t outer = text.find("subgraph \"cluster_visual\" {");
  size_t inner = text.find("subgraph \"cluster_visual.proj\" {");
  size_t linear = text.find("\"%0\" [label=\"linear\"");
  size_t input = text.find("\"%x\" [label=\"x\"");
  ASSERT_NE(linear, std::string::npos);
  EXPECT_LT(input, outer);
  EXPECT_LT(outer, inner);
  EXPECT_LT(inner, linear);
  EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}'));
}

TEST(Dot, LabelsShowArgumentsThatAreNotDefaults) {
  EXPECT_THAT(dot(*parsed(kText)), HasSubstr("[label=\"chunk\\nchunks=2\""));
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
