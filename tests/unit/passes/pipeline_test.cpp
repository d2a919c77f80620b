// Pipelines: their text form, their two phases, and error reports of passes.
#include "passes/pipeline.h"

#include "passes/specialize/specialize.h"
#include "tests/unit/passes/passes_test_util.h"

#include "gmock/gmock.h"

namespace cgc::passes {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(PassManagerTest, TextRoundTrips) {
  auto passes = PassManager::parse(" inline, specialize,fold ,dce");
  ASSERT_TRUE(passes);
  EXPECT_EQ(passes->toString(), "inline,specialize,fold,dce");
  for (const char *nothing : {"", "  "}) {
    auto none = PassManager::parse(nothing);
    ASSERT_TRUE(none);
    EXPECT_EQ(none->toString(), "");
  }
}

/// Settings with which all passes of the kind run, or as few as possible.
PipelineSettings settingsOf(PipelineKind kind, bool all) {
  if (!all)
    return {.kind = kind};
  return {.kind = kind,
          .target = DeviceKind::Cuda,
          .precision = DType::F16,
          .hostModules = {"a.*", "b"},
          .autocast = DType::F16,
          .loss = 1,
          .optimizer = {.rule = OptimizerRule::Adam, .clipNorm = 0.5},
          .recompute = "blocks",
          .microBatches = 2};
}

class DefaultPasses : public testing::TestWithParam<std::tuple<PipelineKind, bool>> {};

TEST_P(DefaultPasses, AreAPipelineThatTextKeeps) {
  const PassList passes = defaultPasses(std::apply(settingsOf, GetParam()));
  const auto made = PassManager::create(passes);
  ASSERT_TRUE(made) << made.status().message();
  const auto parsed = parsePassList(made->toString());
  ASSERT_TRUE(parsed) << parsed.status().message();
  EXPECT_EQ(toString(*parsed), toString(passes));
}

INSTANTIATE_TEST_SUITE_P(
    All, DefaultPasses,
    testing::Combine(testing::Values(PipelineKind::Inference, PipelineKind::Step,
                                     PipelineKind::FirstGradient, PipelineKind::NextGradient,
                                     PipelineKind::Update, PipelineKind::Evaluate),
                     testing::Bool()));

TEST(DefaultPassesTest, EachHostModuleHasARun) {
  EXPECT_THAT(toString(defaultPasses({.hostModules = {"a.*", "b"}})),
              StartsWith("host-calls{module=a.*},host-calls{module=b},module-substitution,"));
}

TEST(DefaultPassesTest, OnlyTheFirstEntryOfATrainingPlanPreparesTheModule) {
  for (const PipelineKind kind : {PipelineKind::FirstGradient, PipelineKind::NextGradient,
                                  PipelineKind::Update, PipelineKind::Evaluate})
    EXPECT_FALSE(PassManager::create(defaultPasses({.kind = kind}))->contains("inline"));
  EXPECT_TRUE(PassManager::create(defaultPasses({.kind = PipelineKind::Step}))->contains("inline"));
}

TEST(DefaultPassesTest, AnUpdateHasOnlyTheMeanOfGradients) {
  EXPECT_THAT(toString(defaultPasses(settingsOf(PipelineKind::Update, /*all=*/true))),
              StartsWith("accumulate{mode=mean},optimize{rule=adam,lr=0.001,clip-norm=0.5},fold"));
}

TEST(PassManagerTest, UnknownNameSuggestsTheNearest) {
  auto passes = PassManager::parse("inline,canonicalise");
  ASSERT_FALSE(passes);
  EXPECT_EQ(passes.status().code(), Code::Usage);
  EXPECT_THAT(passes.status().message(), HasSubstr("'canonicalise'; did you mean 'canonicalize'?"));
}

TEST(PassManagerTest, NameThatIsNearNothingListsAll) {
  auto passes = PassManager::parse("vectorize_loops");
  ASSERT_FALSE(passes);
  EXPECT_THAT(passes.status().message(),
              HasSubstr("the passes are host-calls, module-substitution, inline"));
}

TEST(PassManagerTest, OptionsRoundTrip) {
  auto passes = PassManager::parse("precision{ to=f16 }, fold{limit=1}, cse {}");
  ASSERT_TRUE(passes) << passes.status().message();
  EXPECT_EQ(passes->toString(), "precision{to=f16},fold{limit=1},cse");
  EXPECT_EQ(passes->toString(2), "fold{limit=1},cse");
  EXPECT_EQ(passes->option("precision", "to"), "f16");
  EXPECT_EQ(passes->option("fold", "to"), std::nullopt);
  EXPECT_EQ(passes->option("dce", "to"), std::nullopt);
}

TEST(PassManagerTest, WrongOptionsSayWhatIsRight) {
  struct Case {
    const char *pipeline, *message;
  };
  for (const Case &c :
       {Case{"fold{limt=1}", "pass 'fold' has no option 'limt'; did you mean 'limit'?"},
        Case{"precision{too=f16}", "has no option 'too'; did you mean 'to'?"},
        Case{"fold{color=red}", "has no option 'color'; its options are limit"},
        Case{"cse{limit=1}", "pass 'cse' has no option 'limit'; it takes none"},
        Case{"precision", "needs a dtype, as in precision{to=f16}"},
        Case{"precision{to=fp16}", "f16, bf16, f32, not 'fp16'; did you mean 'f16'?"},
        Case{"fold{limit=-1}", "'limit' of pass 'fold' is a number, not '-1'"},
        Case{"fold{limit}", "expected name=value"},
        Case{"fold{limit=1,limit=2}", "'limit' of pass 'fold' is there twice"},
        Case{"recompute{level=most}", "cheap, blocks, micro-batches, not 'most'"},
        Case{"micro-batches{count=1}", "is 1, and has to be from 2 to 2147483647"},
        Case{"split-ranks{count=1}", "is 1, and has to be from 2 to 1048576"},
        Case{"split-ranks{count=1048577}", "is 1048577, and has to be from 2 to 1048576"},
        Case{"join-collectives{bytes=0}", "has to be at least 1"},
        Case{"split-updates{elements=0}", "has to be at least 1"},
        Case{"shard-updates{shards=0}", "has to be at least 1"},
        Case{"fold{limit=1", "one pair of braces"}, Case{"fold{limit=1}x", "one pair of braces"},
        Case{"fold}", "there is no pass 'fold}'; did you mean 'fold'?"}}) {
    auto passes = PassManager::parse(c.pipeline);
    ASSERT_FALSE(passes) << c.pipeline;
    EXPECT_EQ(passes.status().code(), Code::Usage);
    EXPECT_THAT(passes.status().message(), HasSubstr(c.message));
  }
}

TEST(PassManagerTest, OptionsReachThePass) {
  const char *text = R"(
graph @g(%x: f32[2]) {
  %0 = aten.mul(%x, 1) : f32[2]
  %1 = aten.mul(%0, 1) : f32[2]
  output %1
})";
  auto module = parse(text);
  ASSERT_TRUE(runPasses(*module, "canonicalize{max-rewrites=1}").isOk());
  EXPECT_EQ(llvm::StringRef(ir::toString(*module)).count("aten.mul"), 1u);
  ASSERT_TRUE(runPasses(*module, "canonicalize").isOk());
  EXPECT_EQ(llvm::StringRef(ir::toString(*module)).count("aten.mul"), 0u);
}

TEST(PassManagerTest, StopAfterAPassOrAPosition) {
  for (const char *last : {"fold", "2"}) {
    auto passes = PassManager::parse("cse,fold,dce,fold");
    ASSERT_TRUE(passes && passes->stopAfter(last).isOk());
    EXPECT_EQ(passes->toString(), "cse,fold");
  }
  auto passes = PassManager::parse("cse,fold");
  for (const char *last : {"0", "3", "inline"})
    EXPECT_EQ(passes->stopAfter(last).code(), Code::Usage) << last;
  EXPECT_THAT(passes->stopAfter("flod").message(), HasSubstr("did you mean 'fold'?"));
  EXPECT_THAT(PassManager::parse("")->stopAfter("dce").message(),
              HasSubstr("'dce': the pipeline has no passes"));
}

TEST(PassManagerTest, EmptyNameIsRefused) {
  for (const char *pipeline : {"inline,,dce", "inline, ,dce", ",dce", "inline,", ","}) {
    const Status status = PassManager::parse(pipeline).status();
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_THAT(status.message(), HasSubstr("lacks a name between two commas")) << pipeline;
  }
}

TEST(PassManagerTest, ModulePassAfterGraphPassIsRefused) {
  auto passes = PassManager::parse("specialize,inline");
  ASSERT_FALSE(passes);
  EXPECT_EQ(passes.status().code(), Code::Usage);
  EXPECT_THAT(passes.status().message(), HasSubstr("put it before 'specialize'"));
}

constexpr const char *kTwoMethods = R"(
module @Root class="Root" {
  module @act class="Act" {
    graph @forward(%x: dynamic) -> dynamic {
      %0 = aten.relu(%x) : dynamic
      output %0
    }
  }
  graph @encode(%x: dynamic) -> dynamic {
    %0 = call_module @act.forward(%x) : dynamic
    output %0
  }
})";

TEST(PipelineTest, OneSpecializedGraphForEachBucketAndTheEntryStays) {
  auto module = parse(kTwoMethods);
  auto pipeline = PipelineBuilder().build();
  ASSERT_TRUE(pipeline);
  PassContext context{.target = DeviceKind::Cuda};
  ASSERT_TRUE(pipeline->prepare(*module, context).isOk());
  const ir::Graph &entry = *module->findGraph("encode");
  std::string before = ir::toString(entry);
  for (int64_t batch : {1, 4}) {
    auto graph =
        pipeline->specialize(entry, "encode.b" + std::to_string(batch),
                             {ir::Type(ir::TensorType::dense(DType::F16, {batch, 8}))}, context);
    ASSERT_TRUE(graph) << graph.status().message();
    EXPECT_EQ((*graph)->name(), "encode.b" + std::to_string(batch));
    EXPECT_EQ((*graph)->outputs().front().value()->tensor(),
              ir::TensorType::dense(DType::F16, {batch, 8}, DeviceKind::Cuda));
  }
  EXPECT_EQ(ir::toString(entry), before);
}

TEST(PipelineTest, WrongNumberOfInputsIsAUsageError) {
  auto module = parse(kTwoMethods);
  auto pipeline = PipelineBuilder().build();
  ASSERT_TRUE(pipeline && pipeline->prepare(*module, {}).isOk());
  auto graph = pipeline->specialize(*module->findGraph("encode"), "g", {}, {});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.status().code(), Code::Usage);
  EXPECT_THAT(graph.status().message(), HasSubstr("'encode' takes 1 inputs, not 0"));
}

TEST(PipelineTest, MissingInputTypeIsReported) {
  auto module = parse(kTwoMethods);
  Status status = runPasses(*module, "inline,specialize");
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_THAT(status.message(), HasSubstr("input 'x' has no type"));
}

TEST(PipelineTest, SpecializeWithoutInlineSaysWhatToRun) {
  auto module = parse(kTwoMethods);
  module->findGraph("encode")->inputs()[0]->setType(ir::TensorType::dense(DType::F32, {2}));
  Status status = runPasses(*module, "specialize");
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("run the pass 'inline' first"));
}

TEST(PipelineTest, CanonicalizeWithoutSpecializeSaysWhatToRun) {
  auto module = parse(kTwoMethods);
  Status status = runPasses(*module, "inline,canonicalize");
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("pass 'canonicalize'"));
  EXPECT_THAT(status.message(), HasSubstr("run the pass 'specialize' first"));
}

TEST(PipelineTest, RecomputeNeedsALoss) {
  auto module = parse("graph @g(%x: f32[2]) {\n  output\n}");
  Status status = runPasses(*module, "recompute");
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("the graph has no loss, which is its first output"));
}

TEST(PassManagerTest, AccumulateNeedsAGraphWithoutInPlaceOps) {
  auto module = parse(R"(graph @g(%x: f32[2]) {
    %0 = aten.neg(%x) : f32[2]
    %1 = aten.relu_(%0) : f32[2]
    output %1
  })");
  const Status status = runPasses(*module, "accumulate");
  EXPECT_THAT(status.message(), HasSubstr("%1 is computed in place"));
}

TEST(PassManagerTest, MicroBatchesNeedADivisibleBatch) {
  const auto refusal = [](const char *inputs, const char *passes) {
    const std::string text =
        "graph @g(" + std::string(inputs) + ") {\n%0 = aten.sum(%x) : f32[]\noutput %0\n}";
    auto module = parse(text);
    const Status status = runPasses(*module, passes);
    EXPECT_EQ(status.code(), Code::Usage);
    return status.message();
  };
  EXPECT_THAT(refusal("%x: f32[6,3]", "micro-batches{count=4}"),
              HasSubstr("a batch of 6 is not divisible into 4 micro-batches; change the batch or"));
  EXPECT_THAT(refusal("%x: f32[1,3]", "micro-batches"), HasSubstr("a batch of 1"));
  EXPECT_THAT(refusal("%x: f32[0,3]", "micro-batches"), HasSubstr("a batch of 0"));
  EXPECT_THAT(refusal("%x: f32[4,3], %y: f32[6,3]", "micro-batches"),
              HasSubstr("dimension 0 is 4 in 'x' and 6 in 'y', so that there is no batch to split; "
                        "compile the step without --grad-cache"));
}

TEST(PipelineTest, OffendersReachTheCallersDiagnostics) {
  auto module = parse(R"(
graph @g(%x: f32[2,3]) {
  %0 = aten.matmul(%x, %x) : dynamic loc("a.py":1)
  %1 = aten.add(%x, %x) {alpha=1.5} : dynamic loc("a.py":2)
  %2 = aten.fallback "aten::foo(Tensor a) -> Tensor"(%x) : dynamic loc("a.py":3)
  output %0, %1, %2
})");
  ir::Diagnostics diagnostics;
  Status status = runPasses(*module, "specialize", {.diagnostics = &diagnostics});
  EXPECT_EQ(status.code(), Code::Unsupported);
  ASSERT_EQ(diagnostics.errors().size(), 2u);
  EXPECT_EQ(diagnostics.errors()[0].loc.line, 1u);
  EXPECT_EQ(diagnostics.errors()[1].loc.line, 3u);
}

TEST(SpecializeTest, DevicesBecomeTheTarget) {
  auto module = parse(R"(
module @Root class="Root" {
  param @w : f32[2]
  graph @g(%x: f32[2]@cuda) {
    %w = get_attr @w : f32[2]
    %0 = aten.to(%x) {device=cpu} : dynamic
    %1 = aten.mul(%0, %w) : dynamic
    output %1
  }
})");
  ASSERT_TRUE(runPasses(*module, "specialize,canonicalize", {.target = DeviceKind::Cuda}).isOk());
  for (const ir::Node &node : *module->findGraph("g")) {
    EXPECT_FALSE(node.is(ir::OpKind::To)) << "a move to the target is nothing";
    for (const ir::Value &value : node.results())
      EXPECT_EQ(value.tensor().device, DeviceKind::Cuda);
  }
}

TEST(PassManagerTest, AnOptionIsThatOfTheLastPassOfTheName) {
  const auto manager = PassManager::parse("fold{limit=1},cse,fold{limit=2}");
  ASSERT_TRUE(manager);
  EXPECT_EQ(manager->option("fold", "limit"), "2");
  EXPECT_EQ(manager->option("dce", "limit"), std::nullopt);
}

} // namespace
} // namespace cgc::passes
