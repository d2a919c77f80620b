// The two extension points: what is registered is substituted, and nothing else is touched.
#include "passes/pipeline.h"
#include "tests/unit/passes/passes_test_util.h"

#include "gmock/gmock.h"

namespace cgc::passes {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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
  substitution.replaceBody = [&](ir::Module &module) {
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
  EXPECT_THAT(matched({.attributes = {{"heads", ir::Arg(8)}, {"width", ir::Arg(8)}}}),
              ElementsAre());
}

TEST(ModuleSubstitutionTest, WhatAReplacementAddsIsNotMatchedAgain) {
  unsigned replaced = 0;
  Substitutions substitutions{.modules = {{.name = "nest",
                                           .className = "Block",
                                           .replaceBody =
                                               [&](ir::Module &module) {
                                                 if (++replaced > 9)
                                                   return Status(Code::Failed, "without end");
                                                 module.addSubmodule(
                                                     std::make_unique<ir::Module>("in", "Block"));
                                                 return Status::ok();
                                               }}},
                              .ops = {}};
  auto module = parse(kModel);
  const Status status =
      runPasses(*module, "module-substitution", {.substitutions = &substitutions});
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_EQ(replaced, 2u);
}

/// y = exp(x), a module that works in place on y, and what is done with both.
std::string compileInPlace(const std::string &body, const std::string &rest) {
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
  PipelineBuilder builder;
  builder.registerModuleSubstitution(
      {.name = "silu", .className = "Block", .replaceBody = [](ir::Module &act) {
         ir::Graph &graph = *act.findGraph("forward");
         ir::Node *silu = graph.call(ir::OpKind::Silu, {graph.inputs()[0]}, 1, ir::Loc::unknown(),
                                     graph.output());
         graph.output()->setArgs({ir::Arg(silu->result())});
         return Status::ok();
       }});
  const auto pipeline = builder.build();
  EXPECT_TRUE(pipeline->prepare(*module, {}).isOk());
  auto graph = pipeline->specialize(*module->findGraph("forward"), "g",
                                    {ir::Type(ir::TensorType::dense(DType::F32, {2, 2}))}, {});
  return graph ? "ok"
               : std::string(codeName(graph.status().code())) + ": " + graph.status().message();
}

TEST(ModuleSubstitutionTest, AnEffectThatIsStillReadCannotBeReplaced) {
  // The replacement's own copy of the body is left beside it, and would have worked in place.
  const std::string relu = "%1 = aten.relu_(%x) : dynamic loc(\"act.py\":3)\n output %1";
  const std::string add = "%1 = aten.add(%y, %0) : dynamic loc(\"model.py\":7)\n output %1";
  EXPECT_THAT(compileInPlace(relu, add),
              AllOf(HasSubstr("failed: "),
                    HasSubstr("act.py:3: error: substitution 'silu' replaces this in-place op, and "
                              "what it overwrites is still in use: it is read at model.py:7"),
                    HasSubstr("aten.relu_")));
  EXPECT_THAT(compileInPlace(relu, "output %0, %v"), HasSubstr("the model returns it"));
  EXPECT_THAT(compileInPlace("%2 = aten.view(%x) {size=[4]} : dynamic\n %3 = aten.add_(%2, 1) : "
                             "dynamic\n output %x",
                             add),
              HasSubstr("it is read at model.py:7"));
  EXPECT_THAT(compileInPlace("%2 = aten.fallback \"aten::erfinv_(Tensor(a!) self) -> "
                             "Tensor(a!)\"(%x) : dynamic\n output %2",
                             add),
              HasSubstr("it is read at model.py:7"));
  // Nobody reads it, or it is the module's own.
  EXPECT_EQ(compileInPlace(relu, "output %0"), "ok");
  EXPECT_EQ(compileInPlace("%2 = aten.neg(%x) : dynamic\n %3 = aten.relu_(%2) : dynamic\n "
                           "output %3",
                           add),
            "ok");
}

TEST(ModuleSubstitutionTest, ARegisteredClassIsReplacedInTheCompiledGraph) {
  auto module = parse(kModel);
  PipelineBuilder builder;
  builder.registerModuleSubstitution(
      {.name = "silu", .className = "Block", .pathGlob = "blocks.1", .replaceBody = becomeSilu});
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
                                           .replaceBody =
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
                                           .replaceBody =
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

/// The model's graph, specialised by the default pipeline for f32[2,2], or why not.
Result<std::unique_ptr<ir::Graph>> compileModel(ir::Module &module, PipelineBuilder &builder) {
  CGC_ASSIGN_OR_RETURN(const Pipeline pipeline, builder.build());
  CGC_TRY(pipeline.prepare(module, {}));
  return pipeline.specialize(*module.findGraph("forward"), "g",
                             {ir::Type(ir::TensorType::dense(DType::F32, {2, 2}))}, {});
}

std::vector<std::string> opsOf(const ir::Graph &graph) {
  std::vector<std::string> ops;
  for (const ir::Node &node : graph)
    if (node.kind() == ir::NodeKind::CallFunction)
      ops.push_back(ir::opName(node.op()).str());
  return ops;
}

/// Makes each graph of the module compute the sum of its first input, of another shape.
Status becomeSum(ir::Module &module) {
  ir::Graph &graph = *module.findGraph("forward");
  ir::Node *sum = graph.call(ir::OpKind::Sum, {graph.inputs()[0], ir::Arg(), false, ir::Arg()}, 1,
                             ir::Loc::unknown(), graph.output());
  graph.output()->setArgs({ir::Arg(sum->result())});
  return Status::ok();
}

TEST(ModuleSubstitutionTest, AnotherTypeIsRefusedWithBoth) {
  auto module = parse(kModel);
  PipelineBuilder builder;
  builder.registerModuleSubstitution(
      {.name = "sum", .className = "Block", .replaceBody = becomeSum});
  auto graph = compileModel(*module, builder);
  EXPECT_EQ(graph.status().code(), Code::Failed);
  EXPECT_THAT(graph.status().message(),
              HasSubstr("substitution 'sum' gives f32[], and what it replaces gives f32[2,2]; make "
                        "it give the same"));
}

TEST(ModuleSubstitutionTest, ListsAndConstantsAreComparedToo) {
  auto module = parse(R"(
graph @f(%x: f32[2,3]) {
  %0 = prim.list([%x, none]) : dynamic
  %1 = prim.list([%x, 1]) : dynamic
  %2 = prim.substituted(%1, %0) {name="pair"} : dynamic
  output %2
})");
  Status status = runPasses(*module, "specialize");
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(), HasSubstr("substitution 'pair' gives [f32[2,3], 1], and what it "
                                          "replaces gives [f32[2,3], none]"));
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
  EXPECT_THAT(runPasses(*module, "specialize").message(),
              HasSubstr("'sum' gives f32[], and what it replaces gives f32[2,3]"));
}

TEST(ModuleSubstitutionTest, WhatCannotBeCompiledCanBeReplaced) {
  std::string text = kModel;
  const std::string relu = "aten.relu(%x) : dynamic loc(\"block.py\":3 \"blocks.1\")";
  text.replace(text.find(relu), relu.size(),
               "aten.fallback \"aten::fft_fft(Tensor self) -> Tensor\"(%x) : dynamic");
  auto module = parse(text);
  PipelineBuilder builder;
  EXPECT_FALSE(compileModel(*module, builder));
  module = parse(text);
  builder.registerModuleSubstitution(
      {.name = "silu", .pathGlob = "blocks.1", .replaceBody = [](ir::Module &block) {
         ir::Graph &body = *block.findGraph("forward");
         ir::Node *original = body.output()->arg(0).value()->node();
         Status status = becomeSilu(block);
         body.erase(original);
         return status;
       }});
  auto graph = compileModel(*module, builder);
  ASSERT_TRUE(graph) << graph.status().message();
  EXPECT_THAT(opsOf(**graph), ElementsAre("aten.relu", "aten.silu", "aten.mul", "aten.mul"));
}

/// tanh of the call's first argument, times the module's attribute `heads`.
Result<std::vector<ir::Value *>> becomeScaledTanh(ir::Node &call, ir::Module &module) {
  ir::Graph &graph = *call.graph();
  ir::Value *tanh = graph.call(ir::OpKind::Tanh, {call.arg(0)}, 1, call.loc(), &call)->result();
  ir::Arg heads = module.attributes()[0].value;
  return std::vector<ir::Value *>{
      graph.call(ir::OpKind::Mul, {tanh, heads}, 1, call.loc(), &call)->result()};
}

TEST(ModuleSubstitutionTest, CallsAreReplacedWithTheModulesAttributes) {
  auto module = parse(kModel);
  PipelineBuilder builder;
  builder.registerModuleSubstitution({.name = "tanh",
                                      .className = "Block",
                                      .pathGlob = "blocks.1",
                                      .replaceCall = becomeScaledTanh});
  auto graph = compileModel(*module, builder);
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
  EXPECT_THAT(compileModel(*module, nothing).status().message(),
              HasSubstr("data-dependent control flow"));
  auto withoutAssertion = [](ir::Module &block) -> Status {
    ir::Graph &graph = *block.findGraph("forward");
    ir::Value *silu =
        graph.call(ir::OpKind::Silu, {graph.inputs()[0]}, 1, ir::Loc::unknown(), graph.output())
            ->result();
    graph.output()->setArgs({ir::Arg(silu)});
    std::vector<ir::Node *> old;
    for (ir::Node &node : graph)
      if (node.kind() == ir::NodeKind::CallFunction && &node != silu->node())
        old.push_back(&node);
    for (ir::Node *node : llvm::reverse(old))
      graph.erase(node);
    return Status::ok();
  };
  for (ModuleSubstitution substitution :
       {ModuleSubstitution{.name = "body", .pathGlob = "blocks.1", .replaceBody = withoutAssertion},
        ModuleSubstitution{
            .name = "call", .pathGlob = "blocks.1", .replaceCall = becomeScaledTanh}}) {
    module = parse(text);
    PipelineBuilder builder;
    builder.registerModuleSubstitution(substitution);
    auto graph = compileModel(*module, builder);
    EXPECT_TRUE(graph) << graph.status().message();
  }
}

TEST(ModuleSubstitutionTest, CallsOfAnotherTypeOrNumberAreRefused) {
  auto module = parse(kModel);
  PipelineBuilder sums;
  sums.registerModuleSubstitution(
      {.name = "sum",
       .className = "Block",
       .replaceCall = [](ir::Node &call, ir::Module &) -> Result<std::vector<ir::Value *>> {
         return std::vector<ir::Value *>{call.graph()
                                             ->call(ir::OpKind::Sum,
                                                    {call.arg(0), ir::Arg(), false, ir::Arg()}, 1,
                                                    call.loc(), &call)
                                             ->result()};
       }});
  EXPECT_THAT(compileModel(*module, sums).status().message(),
              HasSubstr("'sum' gives f32[], and what it replaces gives f32[2,2]"));
  module = parse(kModel);
  PipelineBuilder nothing;
  nothing.registerModuleSubstitution(
      {.name = "nothing",
       .className = "Block",
       .replaceCall = [](ir::Node &, ir::Module &) -> Result<std::vector<ir::Value *>> {
         return std::vector<ir::Value *>{};
       }});
  EXPECT_THAT(compileModel(*module, nothing).status().message(),
              AllOf(HasSubstr("substitution 'nothing' at %0 = call_module @blocks.0.forward"),
                    HasSubstr("the call has 1 results, and the replacement gives 0")));
}

TEST(ModuleSubstitutionTest, ItReplacesTheBodyOrTheCall) {
  PipelineBuilder builder;
  builder.registerModuleSubstitution({.name = "neither", .className = "Block"});
  EXPECT_THAT(builder.build().status().message(),
              HasSubstr("substitution 'neither' needs a function that replaces the body, or"));
}

/// A graph of f32[2] values after op-substitution and dce, or why not.
std::string substituted(const OpSubstitution &substitution, const std::string &body) {
  Substitutions substitutions{.modules = {}, .ops = {substitution}};
  auto module = parse("graph @g(%x: f32[2], %y: f32[2]) {\n" + body + "\n}");
  Status status = runPasses(*module, "op-substitution,dce", {.substitutions = &substitutions});
  return status.isOk() ? ir::toString(*module->graphs()[0]) : status.message();
}

const OpSubstitution kQuickGelu = {.name = "quick-gelu",
                                   .pattern = R"(
graph @p(%x: dynamic) {
  %0 = aten.mul(%x, 1.702) : dynamic
  %1 = aten.sigmoid(%0) : dynamic
  %2 = aten.mul(%x, %1) : dynamic
  output %2
})",
                                   .replacement = R"(
graph @r(%x: dynamic) {
  %0 = cgc.quick_gelu(%x) : dynamic
  output %0
})"};

TEST(OpSubstitutionTest, APatternBecomesItsReplacement) {
  EXPECT_EQ(substituted(kQuickGelu, R"(
  %0 = aten.mul(%x, 1.702) : f32[2] loc("m.py":7 "act")
  %1 = aten.sigmoid(%0) : f32[2] loc("m.py":7 "act")
  %2 = aten.mul(%x, %1) : f32[2] loc("m.py":8 "act")
  %3 = aten.exp(%2) : f32[2]
  output %3, %2)"),
            R"(graph @g(%x: f32[2], %y: f32[2]) -> (f32[2], f32[2]) {
  %4 = cgc.quick_gelu(%x) : f32[2] loc("m.py":8 "act")
  %3 = aten.exp(%4) : f32[2]
  output %3, %4
}
)");
}

TEST(OpSubstitutionTest, WhatDoesNotFitStays) {
  const std::string slope = R"(
  %0 = aten.mul(%x, 1.5) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%x, %1) : f32[2]
  output %2)";
  EXPECT_THAT(substituted(kQuickGelu, slope), Not(HasSubstr("quick_gelu")));
  const std::string otherInput = R"(
  %0 = aten.mul(%x, 1.702) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%y, %1) : f32[2]
  output %2)";
  EXPECT_THAT(substituted(kQuickGelu, otherInput), Not(HasSubstr("quick_gelu")));
  const std::string fits = R"(
  %0 = aten.mul(%x, 1.702) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%x, %1) : f32[2]
  output %2)";
  EXPECT_THAT(substituted(kQuickGelu, fits), HasSubstr("quick_gelu"));
  for (const std::string type : {"f32[2]", "f16[2]", "f32[3]"}) {
    OpSubstitution typed = kQuickGelu;
    typed.pattern.replace(typed.pattern.find("%x: dynamic"), 11, "%x: " + type);
    typed.pattern.replace(typed.pattern.find("dynamic"), 7, type);
    EXPECT_EQ(llvm::StringRef(substituted(typed, fits)).contains("quick_gelu"), type == "f32[2]")
        << type;
  }
}

TEST(OpSubstitutionTest, WhichResultIsReadMatters) {
  const OpSubstitution second = {.name = "second",
                                 .pattern = R"(
graph @p(%x: dynamic) {
  %0, %1 = aten.chunk(%x) {chunks=2} : dynamic, dynamic
  %2 = aten.exp(%1) : dynamic
  output %2
})",
                                 .replacement = R"(
graph @r(%x: dynamic) {
  %0, %1 = aten.chunk(%x) {chunks=2} : dynamic, dynamic
  %2 = aten.neg(%1) : dynamic
  output %2
})"};
  for (const std::string read : {"%0", "%1"})
    EXPECT_EQ(llvm::StringRef(substituted(second, R"(
  %0, %1 = aten.chunk(%x) {chunks=2} : f32[1], f32[1]
  %2 = aten.exp()" + read + R"() : f32[1]
  output %2)"))
                  .contains("aten.neg"),
              read == "%1")
        << read;
}

TEST(OpSubstitutionTest, WhatOthersReadStays) {
  EXPECT_THAT(substituted(kQuickGelu, R"(
  %0 = aten.mul(%x, 1.702) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%x, %1) : f32[2]
  output %2, %1)"),
              AllOf(HasSubstr("cgc.quick_gelu(%x)"), HasSubstr("%1 = aten.sigmoid(%0)")));
}

/// mul(mul(x, a), b) with constants, which a function puts together.
OpSubstitution mergeFactors() {
  return {.name = "merge",
          .pattern = R"(
graph @p(%x: dynamic, %a: dynamic, %b: dynamic) {
  %0 = aten.mul(%x, %a) : dynamic
  %1 = aten.mul(%0, %b) : dynamic
  output %1
})",
          .replace = [](const OpMatch &match, ir::GraphRewriter &rewriter) -> Result<ir::Value *> {
            auto a = match["a"].asNumber(), b = match["b"].asNumber();
            if (!a || !b)
              return nullptr;
            CGC_ASSIGN_OR_RETURN(ir::Node * merged,
                                 rewriter.tryCreate(ir::OpKind::Mul, {match["x"], *a * *b},
                                                    match.root, &match.root));
            return merged->result();
          }};
}

TEST(OpSubstitutionTest, AFunctionSeesTheConstantsAndMayDecline) {
  auto module = parse(kModel);
  PipelineBuilder builder;
  builder.registerOpSubstitution(mergeFactors());
  auto graph = compileModel(*module, builder);
  ASSERT_TRUE(graph) << graph.status().message();
  EXPECT_THAT(ir::toString(**graph), HasSubstr(", 6.0)"));
  EXPECT_THAT(opsOf(**graph), ElementsAre("aten.relu", "aten.relu", "aten.mul"));
  EXPECT_THAT(substituted(mergeFactors(), R"(
  %0 = aten.mul(%x, %y) : f32[2]
  %1 = aten.mul(%0, 2.0) : f32[2]
  output %1)"),
              HasSubstr("%1 = aten.mul(%0, 2.0)"));
}

TEST(OpSubstitutionTest, AnotherTypeIsRefusedWithBoth) {
  OpSubstitution sum = kQuickGelu;
  sum.replacement = "graph @r(%x: dynamic) {\n  %0 = aten.sum(%x) : dynamic\n  output %0\n}";
  EXPECT_EQ(substituted(sum, R"(
  %0 = aten.mul(%x, 1.702) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%x, %1) : f32[2]
  output %2)"),
            "pass 'op-substitution': substitution 'quick-gelu' at %2 = aten.mul(%x, %1) : f32[2]: "
            "gives f32[], and what it replaces gives f32[2]; make it give the same");
  OpSubstitution half = kQuickGelu;
  half.replacement =
      "graph @r(%x: dynamic) {\n  %0 = aten.to(%x) {dtype=f16} : dynamic\n  output %0\n}";
  EXPECT_THAT(substituted(half, R"(
  %0 = aten.mul(%x, 1.702) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%x, %1) : f32[2]
  output %2)"),
              HasSubstr("gives f16[2], and what it replaces gives f32[2]; make it give the same"));
}

TEST(OpSubstitutionTest, AReplacementWhoseOpRefusesIsNamed) {
  OpSubstitution wrong = kQuickGelu;
  wrong.replacement =
      "graph @r(%x: dynamic) {\n  %0 = aten.bitwise_not(%x) : dynamic\n  output %0\n}";
  EXPECT_THAT(substituted(wrong, R"(
  %0 = aten.mul(%x, 1.702) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%x, %1) : f32[2]
  output %2)"),
              AllOf(HasSubstr("substitution 'quick-gelu' at %2"),
                    HasSubstr("the replacement's aten.bitwise_not refuses: expected 'self'")));
}

TEST(OpSubstitutionTest, ALiarIsCaught) {
  OpSubstitution liar = kQuickGelu;
  liar.replacement.clear();
  liar.replace = [](const OpMatch &match, ir::GraphRewriter &rewriter) -> Result<ir::Value *> {
    rewriter.create(ir::OpKind::Exp, {match["x"]}, match.root, &match.root);
    return nullptr;
  };
  EXPECT_THAT(substituted(liar, R"(
  %0 = aten.mul(%x, 1.702) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%x, %1) : f32[2]
  output %2)"),
              HasSubstr("changed the graph and says that it did not"));
}

TEST(OpSubstitutionTest, TextsThatCannotBeUsedAreRefusedWhenThePipelineIsBuilt) {
  auto refusal = [](const std::string &pattern, const std::string &replacement) {
    PipelineBuilder builder;
    builder.registerOpSubstitution({.name = "s", .pattern = pattern, .replacement = replacement});
    auto built = builder.build();
    EXPECT_FALSE(built) << pattern;
    return built.status().message();
  };
  const std::string exp = "graph @p(%x: dynamic) {\n  %0 = aten.exp(%x) : dynamic\n  output %0\n}";
  EXPECT_THAT(
      refusal("graph @p(%x: dynamic) {\n  %0 = aten.exq(%x) : dynamic\n  output %0\n}", exp),
      AllOf(HasSubstr("the pattern of substitution 's'"), HasSubstr("aten.exq"),
            HasSubstr("did you mean 'aten.eq'")));
  EXPECT_THAT(
      refusal(exp, "graph @r(%y: dynamic) {\n  %0 = aten.exp(%y) : dynamic\n  output %0\n}"),
      HasSubstr("the replacement of substitution 's': the pattern has no input '%y'"));
  EXPECT_THAT(refusal("graph @p(%x: dynamic) {\n  output %x\n}", exp),
              HasSubstr("expected every call to lead to the output"));
  EXPECT_THAT(refusal("graph @p(%x: dynamic) {\n  %0 = aten.exp(%x) : dynamic\n  %1 = aten.neg(%x) "
                      ": dynamic\n  output %1\n}",
                      exp),
              HasSubstr("expected every call to lead to the output"));
  EXPECT_THAT(refusal("graph @p(%x: dynamic, %y: dynamic) {\n  %0 = aten.exp(%x) : dynamic\n  "
                      "output %0\n}",
                      exp),
              HasSubstr("nothing reads input '%y'"));
  EXPECT_THAT(
      refusal("graph @p(%x: dynamic) {\n  %0 = aten.exp(%x) : dynamic\n  output %0, %0\n}", exp),
      HasSubstr("expected one output, a value"));
  EXPECT_THAT(
      refusal("graph @p(%x: dynamic) {\n  %0 = aten.relu_(%x) : dynamic\n  output %0\n}", exp),
      HasSubstr("calls of ops that are not in place"));
  EXPECT_THAT(refusal(exp + "\n" + exp, exp), HasSubstr("'p'"));
  EXPECT_THAT(refusal(exp, ""), HasSubstr("needs a replacement: a text or a function"));
}

/// What a plug-in may register.
struct Throwing {
  static constexpr const char *name = "throwing";
  Result<Changed> run(ir::Graph &, PassContext &) const { throw 7; }
};
struct Negating {
  static constexpr const char *name = "negating";
  Result<Changed> run(ir::Graph &graph, PassContext &) const {
    ir::GraphRewriter rewriter(graph);
    ir::Node *output = graph.output();
    ir::Node *last = output->arg(0).value()->node();
    rewriter.setArg(output, 0,
                    rewriter.create(ir::OpKind::Neg, {output->arg(0)}, *last, output)->result());
    return Changed::Yes;
  }
};
struct Dce {
  static constexpr const char *name = "dce";
  Result<Changed> run(ir::Graph &, PassContext &) const { return Changed::No; }
};

TEST(RegisteredPassTest, RunsWhereThePipelineNamesIt) {
  auto module = parse(kModel);
  PipelineBuilder builder;
  builder.registerPass<Negating>();
  auto graph = compileModel(*module, builder);
  ASSERT_TRUE(graph);
  EXPECT_THAT(opsOf(**graph), ElementsAre("aten.relu", "aten.relu", "aten.mul", "aten.mul"));
  module = parse(kModel);
  builder.setPasses("inline,specialize,negating");
  graph = compileModel(*module, builder);
  ASSERT_TRUE(graph) << graph.status().message();
  EXPECT_THAT(opsOf(**graph),
              ElementsAre("aten.relu", "aten.relu", "aten.mul", "aten.mul", "aten.neg"));
  builder.setPasses("inline,negatin");
  EXPECT_THAT(builder.build().status().message(), HasSubstr("did you mean 'negating'?"));
}

TEST(RegisteredPassTest, WhateverItThrowsIsNamed) {
  auto module = parse(kModel);
  PipelineBuilder builder;
  builder.registerPass<Throwing>().setPasses("inline,specialize,throwing");
  auto graph = compileModel(*module, builder);
  EXPECT_EQ(graph.status().code(), Code::Failed);
  EXPECT_EQ(graph.status().message(), "pass 'throwing': an exception that is no std::exception");
}

TEST(RegisteredPassTest, ANameThatIsTakenIsRefused) {
  PipelineBuilder builder;
  builder.registerPass<Dce>();
  EXPECT_THAT(builder.build().status().message(), HasSubstr("two passes are called 'dce'"));
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

TEST(SubstitutionTest, TheDefaultPipelineSubstitutesNothing) {
  for (DeviceKind target : {DeviceKind::Cpu, DeviceKind::Cuda}) {
    std::vector<std::string> substituting;
    Instrumentation instrumentation;
    instrumentation.add({.before = {},
                         .after =
                             [&](const PassRun &run, Changed changed) {
                               if (llvm::StringRef(run.pass).ends_with("-substitution"))
                                 substituting.push_back(std::string(run.pass) +
                                                        (changed == Changed::Yes ? "!" : ""));
                               return Status::ok();
                             },
                         .finish = {}});
    auto module = parse(kModel);
    PipelineBuilder builder;
    builder.setPasses(defaultPasses(target)).setInstrumentation(std::move(instrumentation));
    ASSERT_TRUE(compileModel(*module, builder));
    EXPECT_THAT(substituting, ElementsAre("module-substitution", "op-substitution"));
  }
}

} // namespace
} // namespace cgc::passes
