// Module substitution: a registered replacement runs where it matches and must fit.
#include "tests/unit/passes/substitution_test_util.h"

namespace cgc::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Makes each graph of the module compute silu of its first input.
Status becomeSilu(ir::Module &module) {
  ir::Graph &graph = *module.findGraph("forward");
  ir::Node *silu =
      graph.call(ir::OpKind::Silu, {graph.inputs()[0]}, 1, ir::Loc::unknown(), graph.output());
  graph.output()->setArgs({ir::Arg(silu->result())});
  return Status::ok();
}

/// Like becomeSilu, and erases the rest of the body.
Status becomeOnlySilu(ir::Module &module) {
  CGC_TRY(becomeSilu(module));
  ir::Graph &graph = *module.findGraph("forward");
  const ir::Node *silu = graph.outputs().front().value()->node();
  std::vector<ir::Node *> old;
  for (ir::Node &node : graph)
    if (node.kind() == ir::NodeKind::CallFunction && &node != silu)
      old.push_back(&node);
  for (ir::Node *node : llvm::reverse(old))
    graph.erase(node);
  return Status::ok();
}

/// Makes each graph of the module compute the sum of its first input, which has another shape.
Status becomeSum(ir::Module &module) {
  ir::Graph &graph = *module.findGraph("forward");
  ir::Node *sum = graph.call(ir::OpKind::Sum, {graph.inputs()[0], ir::Arg(), false, ir::Arg()}, 1,
                             ir::Loc::unknown(), graph.output());
  graph.output()->setArgs({ir::Arg(sum->result())});
  return Status::ok();
}

/// Computes tanh of the call's first argument, times the module's attribute `heads`.
Result<std::vector<ir::Value *>> becomeScaledTanh(ir::Node &call, ir::Module &module) {
  ir::Graph &graph = *call.graph();
  ir::Value *tanh =
      graph.call(ir::OpKind::Tanh, {call.args().front()}, 1, call.loc(), &call)->result();
  ir::Arg heads = module.attributes()[0].value;
  return std::vector<ir::Value *>{
      graph.call(ir::OpKind::Mul, {tanh, heads}, 1, call.loc(), &call)->result()};
}

/// Runs the module phase on kModel with this substitution.
Status substitute(ModuleSubstitution substitution) {
  Substitutions substitutions{.modules = {std::move(substitution)}, .ops = {}};
  auto module = parse(kModel);
  return runPasses(*module, "module-substitution", {.substitutions = &substitutions});
}

/// Compiles `module` with this substitution.
Result<std::unique_ptr<ir::Graph>> compileWith(ir::Module &module,
                                               ModuleSubstitution substitution) {
  PipelineBuilder builder;
  return compileModel(module, builder.registerModuleSubstitution(std::move(substitution)));
}

/// Returns the error of compiling kModel with this substitution.
Status refusal(ModuleSubstitution substitution) {
  auto module = parse(kModel);
  return compileWith(*module, std::move(substitution)).status();
}

/// Returns the paths of the modules that a substitution with this match runs on.
std::vector<std::string> matched(ModuleSubstitution substitution) {
  std::vector<std::string> paths;
  substitution.replaceBody = [&](ir::Module &module) {
    paths.push_back(module.path());
    return Status::ok();
  };
  EXPECT_TRUE(substitute(std::move(substitution)).isOk());
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
  EXPECT_THAT(matched({.attributes = {{"heads", ir::Arg(8)}, {"width", ir::Arg(8)}}}),
              ElementsAre());
}

TEST(ModuleSubstitutionTest, WhatAReplacementAddsIsNotMatchedAgain) {
  unsigned replaced = 0;
  const Status status =
      substitute({.name = "nest", .className = "Block", .replaceBody = [&](ir::Module &module) {
                    if (++replaced > 9)
                      return Status(Code::Failed, "without end");
                    module.addSubmodule(std::make_unique<ir::Module>("in", "Block"));
                    return Status::ok();
                  }});
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_EQ(replaced, 2u);
}

/// Compiles y = exp(x), a module with the in-place body `body` on y that silu replaces, and `rest`,
/// which uses both.
Status compileInPlace(const std::string &body, const std::string &rest) {
  auto module = parse(R"(
module @Root class="Root" {
  module @act class="Block" {
    graph @forward(%x: dynamic) -> dynamic {
)" + body + R"(
    }
  }
  graph @forward(%x: f32[2,2]) {
    %y = aten.exp(%x) : dynamic
    %v = aten.view(%y) {size=[4]} : dynamic
    %0 = call_module @act.forward(%y) : dynamic
)" + rest + R"(
  }
})");
  return compileWith(*module, {.name = "silu", .className = "Block", .replaceBody = becomeSilu})
      .status();
}

TEST(ModuleSubstitutionTest, AnEffectThatIsStillReadCannotBeReplaced) {
  // The replacement keeps the original's in-place body beside it, which would have overwritten y.
  const std::string relu = "%1 = aten.relu_(%x) : dynamic loc(\"act.py\":3)\n output %1";
  const std::string add = "%1 = aten.add(%y, %0) : dynamic loc(\"model.py\":7)\n output %1";
  EXPECT_THAT(compileInPlace(relu, add),
              refuses(Code::Failed,
                      "act.py:3: error: substitution 'silu' replaces this in-place op, and what it "
                      "overwrites is still in use: it is read at model.py:7",
                      "aten.relu_"));
  EXPECT_THAT(compileInPlace(relu, "output %0, %v"), refuses(Code::Failed, "the model returns it"));
  // Behind a branch of the original, too.
  const std::string branch = "%n = aten.dim(%x) : dynamic\n %c = prim.equal(%n, 2) : dynamic\n "
                             "prim.if(%c)\n prim.else()\n prim.end_if([], [])\n ";
  EXPECT_THAT(compileInPlace(branch + relu, add),
              refuses(Code::Failed, "it is read at model.py:7"));
  for (const std::string otherForm :
       {"%2 = aten.view(%x) {size=[4]} : dynamic\n %3 = aten.add_(%2, 1) : dynamic\n output %x",
        "%2 = aten.fallback \"aten::i0_(Tensor(a!) self) -> Tensor(a!)\"(%x) : dynamic\n "
        "output %2"})
    EXPECT_THAT(compileInPlace(otherForm, add), refuses(Code::Failed, "it is read at model.py:7"));
  // Nothing reads the overwritten value, or it belongs to the module.
  EXPECT_EQ(compileInPlace(relu, "output %0").message(), "");
  EXPECT_EQ(compileInPlace("%2 = aten.neg(%x) : dynamic\n %3 = aten.relu_(%2) : dynamic\n "
                           "output %3",
                           add)
                .message(),
            "");
}

TEST(ModuleSubstitutionTest, ARegisteredClassIsReplacedInTheCompiledGraph) {
  auto module = parse(kModel);
  auto graph = compileWith(
      *module,
      {.name = "silu", .className = "Block", .pathGlob = "blocks.1", .replaceBody = becomeSilu});
  ASSERT_TRUE(graph) << graph.status().message();
  EXPECT_THAT(opsOf(**graph), ElementsAre("aten.relu", "aten.silu", "aten.mul", "aten.mul"));
}

TEST(ModuleSubstitutionTest, AnotherNumberOfOutputsIsRefusedWithBoth) {
  auto twice = [](ir::Module &module) {
    ir::Node *output = module.findGraph("forward")->output();
    output->setArgs({output->args().front(), output->args().front()});
    return Status::ok();
  };
  EXPECT_THAT(substitute({.name = "two", .className = "Block", .replaceBody = twice}),
              refuses(Code::Failed,
                      "substitution 'two' on module 'blocks.0': graph @forward had 1 inputs and 1 "
                      "outputs and now has 1 inputs and 2 outputs"));
}

TEST(ModuleSubstitutionTest, AFailingRewriteIsNamed) {
  auto fails = [](ir::Module &) { return Status(Code::Unsupported, "no such head size"); };
  EXPECT_THAT(
      substitute({.name = "picky", .className = "Block", .replaceBody = fails}),
      refuses(Code::Unsupported, "substitution 'picky' on module 'blocks.0': no such head size"));
}

TEST(ModuleSubstitutionTest, AnotherTypeIsRefusedWithBoth) {
  EXPECT_THAT(refusal({.name = "sum", .className = "Block", .replaceBody = becomeSum}),
              refuses(Code::Failed, "substitution 'sum' " + anotherType("f32[]", "f32[2,2]")));
}

TEST(ModuleSubstitutionTest, ListsAndConstantsAreComparedToo) {
  auto module = parse(R"(
graph @f(%x: f32[2,3]) {
  %0 = prim.list([%x, none]) : dynamic
  %1 = prim.list([%x, 1]) : dynamic
  %2 = prim.substituted(%1, %0) {name="pair"} : dynamic
  output %2
})");
  EXPECT_THAT(runPasses(*module, "specialize"),
              refuses(Code::Failed,
                      "substitution 'pair' " + anotherType("[f32[2,3], 1]", "[f32[2,3], none]")));
}

TEST(ModuleSubstitutionTest, DTypesAreCompared) {
  auto module = parse(R"(
graph @f(%x: f32[2,3], %y: f16[2,3]) {
  %0 = prim.substituted(%y, %x) {name="narrow"} : dynamic
  output %0
})");
  EXPECT_THAT(
      runPasses(*module, "specialize"),
      refuses(Code::Failed, "substitution 'narrow' " + anotherType("f16[2,3]", "f32[2,3]")));
}

TEST(ModuleSubstitutionTest, BranchesAndAssertionsOfTheOriginalAreNotJudged) {
  auto module = parse(R"(
graph @f(%x: f32[2]) {
  %3 = aten.relu(%x) : dynamic
  prim.if("relu")
  %0 = prim.bool(%x) : dynamic
  prim.if(%0)
  prim.raise("no")
  %1 = aten.fallback "aten::fft_fft(Tensor self) -> Tensor"(%x) : dynamic
  prim.else()
  %2 = prim.end_if([%1], [%x]) : dynamic
  prim.if(%0)
  prim.else()
  prim.raise("an assertion")
  prim.end_if([], [])
  prim.else()
  %5 = prim.end_if([%2], [none]) : dynamic
  %4 = prim.substituted(%3, %5) {name="relu"} : dynamic
  output %4
})");
  Status status = runPasses(*module, "specialize");
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_THAT(opsOf(*module->graphs()[0]), ElementsAre("aten.relu"));
  module = parse(R"(
graph @f(%x: f32[2,3]) {
  %0 = aten.dim(%x) : dynamic
  %1 = prim.equal(%0, 2) : dynamic
  prim.if(%1)
  %2 = aten.exp(%x) : dynamic
  prim.else()
  %3 = aten.sum(%x) : dynamic
  %4 = prim.end_if([%2], [%3]) : dynamic
  %5 = aten.sum(%x) : dynamic
  %6 = prim.substituted(%5, %4) {name="sum"} : dynamic
  output %6
})");
  EXPECT_THAT(runPasses(*module, "specialize"),
              refuses(Code::Failed, "'sum' " + anotherType("f32[]", "f32[2,3]")));
}

TEST(ModuleSubstitutionTest, WhatCannotBeCompiledCanBeReplaced) {
  std::string text = kModel;
  const std::string relu = "aten.relu(%x) : dynamic loc(\"block.py\":3 \"blocks.1\")";
  text.replace(text.find(relu), relu.size(),
               "aten.fallback \"aten::fft_fft(Tensor self) -> Tensor\"(%x) : dynamic");
  auto module = parse(text);
  PipelineBuilder nothing;
  EXPECT_FALSE(compileModel(*module, nothing));
  module = parse(text);
  auto graph =
      compileWith(*module, {.name = "silu", .pathGlob = "blocks.1", .replaceBody = becomeOnlySilu});
  ASSERT_TRUE(graph) << graph.status().message();
  EXPECT_THAT(opsOf(**graph), ElementsAre("aten.relu", "aten.silu", "aten.mul", "aten.mul"));
}

TEST(ModuleSubstitutionTest, CallsAreReplacedWithTheModulesAttributes) {
  auto module = parse(kModel);
  auto graph = compileWith(*module, {.name = "tanh",
                                     .className = "Block",
                                     .pathGlob = "blocks.1",
                                     .replaceCall = becomeScaledTanh});
  ASSERT_TRUE(graph) << graph.status().message();
  EXPECT_THAT(opsOf(**graph),
              ElementsAre("aten.relu", "aten.tanh", "aten.mul", "aten.mul", "aten.mul"));
  EXPECT_THAT(ir::toString(**graph), HasSubstr(", 8)"));
}

TEST(ModuleSubstitutionTest, AnAssertionOnDataGoesWithTheBodyOrTheCallThatIsReplaced) {
  std::string text = kModel;
  const std::string relu = "%0 = aten.relu(%x) : dynamic loc(\"block.py\":3 \"blocks.1\")";
  ASSERT_NE(text.find(relu), std::string::npos);
  text.insert(text.find(relu), R"(%a = aten.sum(%x) : dynamic
      %b = prim.bool(%a) : dynamic
      prim.if(%b)
      prim.else()
      prim.raise("no")
      prim.end_if([], [])
      )");
  auto module = parse(text);
  PipelineBuilder nothing;
  EXPECT_THAT(compileModel(*module, nothing).status(),
              refuses(Code::Unsupported, "data-dependent control flow"));
  for (const ModuleSubstitution &substitution :
       {ModuleSubstitution{.name = "body", .pathGlob = "blocks.1", .replaceBody = becomeOnlySilu},
        ModuleSubstitution{
            .name = "call", .pathGlob = "blocks.1", .replaceCall = becomeScaledTanh}}) {
    module = parse(text);
    auto graph = compileWith(*module, substitution);
    EXPECT_TRUE(graph) << graph.status().message();
  }
}

TEST(ModuleSubstitutionTest, CallsOfAnotherTypeOrNumberAreRefused) {
  using Values = Result<std::vector<ir::Value *>>;
  auto sum = [](ir::Node &call, ir::Module &) -> Values {
    ir::Node *node = call.graph()->call(
        ir::OpKind::Sum, {call.args().front(), ir::Arg(), false, ir::Arg()}, 1, call.loc(), &call);
    return std::vector<ir::Value *>{node->result()};
  };
  EXPECT_THAT(refusal({.name = "sum", .className = "Block", .replaceCall = sum}),
              refuses(Code::Failed, "'sum' " + anotherType("f32[]", "f32[2,2]")));
  auto nothing = [](ir::Node &, ir::Module &) -> Values { return std::vector<ir::Value *>{}; };
  EXPECT_THAT(refusal({.name = "nothing", .className = "Block", .replaceCall = nothing}),
              refuses(Code::Failed, "substitution 'nothing' at %0 = call_module @blocks.0.forward",
                      "the call has 1 results, and the replacement gives 0"));
}

TEST(ModuleSubstitutionTest, ItReplacesTheBodyOrTheCall) {
  EXPECT_THAT(
      refusal({.name = "neither", .className = "Block"}),
      refuses(Code::Failed, "substitution 'neither' needs a function that replaces the body, or"));
}

} // namespace
} // namespace cgc::passes
