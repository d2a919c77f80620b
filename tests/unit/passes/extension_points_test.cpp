// Extension points as a whole: a registered pass runs where the pipeline names it, and without
// registrations nothing is substituted.
#include "tests/unit/passes/substitution_test_util.h"

namespace cgc::passes {
namespace {

using ::testing::ElementsAre;

/// A pass that throws, as a plug-in's may.
struct Throwing {
  static constexpr const char *name = "throwing";
  Result<Changed> run(ir::Graph &, PassContext &) const { throw 7; }
};
struct Negating {
  static constexpr const char *name = "negating";
  Result<Changed> run(ir::Graph &graph, PassContext &) const {
    ir::GraphRewriter rewriter(graph);
    ir::Node *output = graph.output();
    ir::Value *last = graph.outputs().front().value();
    rewriter.setArgs(output,
                     {rewriter.create(ir::OpKind::Neg, {last}, *last->node(), output)->result()});
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
  EXPECT_THAT(builder.build().status(), refuses(Code::Usage, "did you mean 'negating'?"));
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
  EXPECT_THAT(builder.build().status(), refuses(Code::Failed, "two passes are called 'dce'"));
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
    builder.setPasses(defaultPasses({.target = target}))
        .setInstrumentation(std::move(instrumentation));
    ASSERT_TRUE(compileModel(*module, builder));
    EXPECT_THAT(substituting, ElementsAre("module-substitution", "op-substitution"));
  }
}

} // namespace
} // namespace cgc::passes
