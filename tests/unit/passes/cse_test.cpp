// Cse: parameters that share bytes, which the text form cannot express.
#include "tests/unit/passes/passes_test_util.h"

#include "gmock/gmock.h"

namespace cgc::passes {
namespace {

using ::testing::ElementsAre;

TEST(CseTest, ParametersOnTheSameBytesAreOneIfTheirTypesAreEqual) {
  auto module = parse(R"(
module @Root class="Root" {
  param @matrix : f32[2,4]
  param @tied : f32[2,4]
  param @flat : f32[8]
  graph @forward() -> (f32[2,4], f32[2,4], f32[8]) {
    %0 = get_attr @matrix : f32[2,4]
    %1 = get_attr @tied : f32[2,4]
    %2 = get_attr @flat : f32[8]
    output %0, %1, %2
  }
})");
  ASSERT_TRUE(module);
  auto bytes = std::make_shared<std::vector<std::byte>>(8 * sizeof(float));
  for (const ir::Parameter &parameter : module->parameters())
    module->setParameterData(parameter.name,
                             std::make_shared<ir::TensorData>(parameter.type, *bytes, bytes));
  ASSERT_TRUE(runPasses(*module, "cse").isOk());
  std::vector<std::string> read;
  for (const ir::Arg &output : module->findGraph("forward")->output()->args())
    read.push_back(output.value()->node()->target());
  EXPECT_THAT(read, ElementsAre("matrix", "matrix", "flat"));
}

/// A pass that moves, merges or evaluates nodes requires that no value changes in between.
TEST(FunctionalTest, PassesRefuseGraphsWithEffects) {
  const OpSubstitution substitution = {
      .name = "s",
      .pattern = "graph @p(%x: dynamic) {\n  %0 = aten.exp(%x) : dynamic\n  output %0\n}",
      .replacement = "graph @r(%x: dynamic) {\n  %0 = aten.exp(%x) : dynamic\n  output %0\n}"};
  const Substitutions substitutions{.modules = {}, .ops = {substitution}};
  const PassContext context{.substitutions = &substitutions};
  for (const char *pass : {"cse", "fold", "op-substitution", "precision{to=f16}", "select-norm"}) {
    auto message = [&](const std::string &text) {
      auto module = parse(text);
      const Status status = runPasses(*module, pass, context);
      EXPECT_EQ(status.code(), Code::Usage) << pass;
      return status.message();
    };
    EXPECT_THAT(message(R"(
graph @g(%x: f32[4]) {
  %z = aten.full() {size=[4], fill_value=100000, dtype=f32} : f32[4]
  %0 = aten.add_(%z, %x) : f32[4]
  %1 = aten.exp(%z) : f32[4]
  output %1
})"),
                ::testing::HasSubstr("%0 is computed in place; run the pass 'canonicalize' first"));
    EXPECT_THAT(message(R"(
module @Root class="Root" {
  module @act class="Act" {
    graph @forward(%x: f32[4]) {
      %0 = aten.relu_(%x) : f32[4]
      output %0
    }
  }
  graph @g(%x: f32[4]) {
    %0 = aten.exp(%x) : f32[4]
    %1 = call_module @act.forward(%0) : f32[4]
    output %0
  }
})"),
                ::testing::HasSubstr("a call of 'act.forward' is left; run the pass 'inline'"));
    EXPECT_THAT(message(R"(
graph @g(%x: f32[4]) {
  prim.if(true)
  %0 = aten.exp(%x) : f32[4]
  prim.else()
  %1 = aten.exp(%x) : f32[4]
  prim.end_if([], [])
  output %x
})"),
                ::testing::HasSubstr("'prim.if' is left; run the pass 'specialize' first"));
  }
}

} // namespace
} // namespace cgc::passes
