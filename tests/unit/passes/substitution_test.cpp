// The two extension points: what is registered is substituted, and nothing else is touched.
#include "passes/pipeline.h"
#include "tests/unit/passes/passes_test_util.h"

#include "gmock/gmock.h"

namespace cgc::passes {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char *kModel = R"(
module @Root class="Model" {
  module @blocks class="Sequential" {
    module @0 class="Block" {
      attr heads = 4
      graph @forward(%x: dynamic) -> dynamic {
        %0 = aten.relu(%x) : dynamic loc("block.py":3 "blocks.0")
        output %0
      }
    }
    module @1 class="Block" {
      attr heads = 8
      graph @forward(%x: dynamic) -> dynamic {
        %0 = aten.relu(%x) : dynamic loc("block.py":3 "blocks.1")
        output %0
      }
    }
  }
  graph @forward(%x: f32[2,2]) {
    %0 = call_module @blocks.0.forward(%x) : dynamic
    %1 = call_module @blocks.1.forward(%0) : dynamic
    %2 = aten.mul(%1, 2.0) : dynamic
    %3 = aten.mul(%2, 3.0) : dynamic
    output %3
  }
})";

/// Makes each graph of the module compute silu of its first input.
Status becomeSilu(ir::Module &module) {
  ir::Graph &graph = *module.findGraph("forward");
  ir::Node *silu =
      graph.call(ir::OpKind::Silu, {graph.inputs()[0]}, 1, ir::Loc::unknown(), graph.output());
  graph.output()->setArgs({ir::Arg(silu->result())});
  return Status::ok();
}

/// Paths of the modules that a substitution with this match runs on.
std::vector<std::string> matched(ModuleSubstitution substitution) {
  std::vector<std::string> paths;
  substitution.rewrite = [&](ir::Module &module) {
    paths.push_back(module.path());
    return Status::ok();
  };
  Substitutions substitutions{.modules = {substitution}, .ops = {}};
  auto module = parse(kModel);
  EXPECT_TRUE(runPasses(*module, "module-substitution", {.substitutions = &substitutions}).isOk());
  return paths;
}

TEST(ModuleSubstitutionTest, MatchesByClassPathAndAttributes) {
  EXPECT_THAT(matched({.className = "Block"}), ElementsAre("blocks.0", "blocks.1"));
  EXPECT_THAT(matched({.className = "Bloc"}), ElementsAre());
  EXPECT_THAT(matched({.pathGlob = "blocks.*"}), ElementsAre("blocks.0", "blocks.1"));
  EXPECT_THAT(matched({.pathGlob = "*"}), ElementsAre("", "blocks"));
  EXPECT_THAT(matched({.pathGlob = "**1"}), ElementsAre("blocks.1"));
  EXPECT_THAT(matched({.className = "Block", .attributes = {{"heads", ir::Arg(8)}}}),
              ElementsAre("blocks.1"));
  EXPECT_THAT(matched({.attributes = {{"heads", ir::Arg(8.0)}}}), ElementsAre());
  EXPECT_THAT(matched({.attributes = {{"width", ir::Arg(8)}}}), ElementsAre());
}

TEST(ModuleSubstitutionTest, ARegisteredClassIsReplacedInTheCompiledGraph) {
  auto module = parse(kModel);
  PipelineBuilder builder;
  builder.registerModuleSubstitution(
      {.name = "silu", .className = "Block", .pathGlob = "blocks.1", .rewrite = becomeSilu});
  auto pipeline = builder.build();
  ASSERT_TRUE(pipeline);
  ASSERT_TRUE(pipeline->prepare(*module, {}).isOk());
  auto graph = pipeline->specialize(*module->findGraph("forward"), "g",
                                    {ir::Type(ir::TensorType::dense(DType::F32, {2, 2}))}, {});
  ASSERT_TRUE(graph) << graph.status().message();
  std::vector<llvm::StringRef> ops;
  for (const ir::Node &node : **graph)
    if (node.kind() == ir::NodeKind::CallFunction)
      ops.push_back(ir::opName(node.op()));
  EXPECT_THAT(ops, ElementsAre("aten.relu", "aten.silu", "aten.mul", "aten.mul"));
}

TEST(ModuleSubstitutionTest, AnotherNumberOfOutputsIsRefusedWithBoth) {
  Substitutions substitutions{.modules = {{.name = "two",
                                           .className = "Block",
                                           .rewrite =
                                               [](ir::Module &module) {
                                                 ir::Node *output =
                                                     module.findGraph("forward")->output();
                                                 output->setArgs({output->arg(0), output->arg(0)});
                                                 return Status::ok();
                                               }}},
                              .ops = {}};
  auto module = parse(kModel);
  Status status = runPasses(*module, "module-substitution", {.substitutions = &substitutions});
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(
      status.message(),
      HasSubstr("substitution 'two' on module 'blocks.0': graph @forward had 1 inputs and 1 "
                "outputs and now has 1 inputs and 2 outputs"));
}

TEST(ModuleSubstitutionTest, AFailingRewriteIsNamed) {
  Substitutions substitutions{.modules = {{.name = "picky",
                                           .className = "Block",
                                           .rewrite =
                                               [](ir::Module &) {
                                                 return Status(Code::Unsupported,
                                                               "no such head size");
                                               }}},
                              .ops = {}};
  auto module = parse(kModel);
  Status status = runPasses(*module, "module-substitution", {.substitutions = &substitutions});
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_THAT(status.message(),
              HasSubstr("substitution 'picky' on module 'blocks.0': no such head size"));
}

/// mul(mul(x, a), b) with constants becomes mul(x, a * b). The inner one may have other users; dce
/// erases it if it has none.
Result<bool> mergeFactors(ir::Node &node, ir::GraphRewriter &rewriter) {
  if (!node.is(ir::OpKind::Mul) || !node.arg(1).is<double>())
    return false;
  ir::Node *inner = node.arg(0).value()->node();
  if (!inner->is(ir::OpKind::Mul) || !inner->arg(1).is<double>())
    return false;
  double factor = node.arg(1).as<double>() * inner->arg(1).as<double>();
  ir::Node *merged = rewriter.create(ir::OpKind::Mul, {inner->arg(0), factor}, node, &node);
  rewriter.replace(&node, merged->result());
  return true;
}

TEST(OpSubstitutionTest, ARegisteredPatternIsReplaced) {
  auto module = parse(kModel);
  auto pipeline = PipelineBuilder().registerOpSubstitution({"merge", mergeFactors}).build();
  ASSERT_TRUE(pipeline);
  ASSERT_TRUE(pipeline->prepare(*module, {}).isOk());
  auto graph = pipeline->specialize(*module->findGraph("forward"), "g",
                                    {ir::Type(ir::TensorType::dense(DType::F32, {2, 2}))}, {});
  ASSERT_TRUE(graph) << graph.status().message();
  EXPECT_THAT(ir::toString(**graph), HasSubstr(", 6.0)"));
  EXPECT_EQ((*graph)->size(), 5u); // placeholder, relu, relu, mul, output
}

TEST(OpSubstitutionTest, WhatOthersReadStays) {
  Substitutions substitutions{.modules = {}, .ops = {{"merge", mergeFactors}}};
  auto module = parse(R"(
graph @g(%x: f32[2]) {
  %0 = aten.mul(%x, 2.0) : f32[2]
  %1 = aten.mul(%0, 3.0) : f32[2]
  output %0, %1
})");
  ASSERT_TRUE(runPasses(*module, "op-substitution,dce", {.substitutions = &substitutions}).isOk());
  EXPECT_THAT(ir::toString(*module),
              AllOf(HasSubstr("%0 = aten.mul(%x, 2.0)"), HasSubstr("aten.mul(%x, 6.0)")));
}

TEST(OpSubstitutionTest, ALiarIsCaught) {
  Substitutions substitutions{
      .modules = {},
      .ops = {{"liar", [](ir::Node &node, ir::GraphRewriter &rewriter) -> Result<bool> {
                 rewriter.setArg(&node, 0, node.arg(0));
                 return false;
               }}}};
  auto module = parse("graph @g(%x: f32[2]) {\n %0 = aten.exp(%x) : f32[2]\n output %0\n}");
  Status status = runPasses(*module, "op-substitution", {.substitutions = &substitutions});
  EXPECT_THAT(status.message(), HasSubstr("substitution 'liar' at %0 changed the graph and says"));
}

TEST(SubstitutionTest, AnEmptyRegistryLeavesTheTextAsItIs) {
  Substitutions none;
  for (const Substitutions *substitutions :
       {static_cast<const Substitutions *>(nullptr), static_cast<const Substitutions *>(&none)}) {
    auto module = parse(kModel);
    std::string before = ir::toString(*module);
    ASSERT_TRUE(
        runPasses(*module, "module-substitution,op-substitution", {.substitutions = substitutions})
            .isOk());
    EXPECT_EQ(ir::toString(*module), before);
  }
}

} // namespace
} // namespace cgc::passes
