// Tests of compile() as a library: which passes run, what the plan holds, and what is refused.
#include "driver/compile.h"

#include "ir/text/text.h"
#include "runtime/plan/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace cgc::driver {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char *kText = R"(module @root class="Tiny" {
  param @weight : f32[16,8]

  graph @forward(%x: dynamic) -> dynamic {
    %w = get_attr @weight : dynamic
    %0 = aten.linear(%x, %w) : dynamic
    %1 = aten.gelu(%0) : dynamic
    output %1
  }

  graph @negate(%y: dynamic) -> dynamic {
    %0 = aten.neg(%y) : dynamic
    output %0
  }
})";

/// The module of this text.
std::unique_ptr<ir::Module> parse(llvm::StringRef text) {
  ir::Diagnostics diagnostics;
  auto root = ir::parseModule(text, "test.cgir", diagnostics);
  EXPECT_TRUE(root) << diagnostics.render();
  return root;
}

/// The module of kText, whose parameter has bytes.
std::unique_ptr<ir::Module> tiny() {
  auto root = parse(kText);
  if (root) {
    const ir::Parameter &weight = root->parameters()[0];
    const std::vector<std::byte> bytes(weight.type.numBytes(), std::byte{1});
    root->setParameterData(weight.name, ir::TensorData::copyOf(weight.type, bytes));
  }
  return root;
}

CompileOptions forwardOptions() {
  CompileOptions options;
  options.inputs = {{"x", DType::F32, {3, 8}}};
  return options;
}

Result<backend::CompiledPlan> compileTiny(const CompileOptions &options) {
  ir::Diagnostics diagnostics;
  return compile(*tiny(), options, diagnostics); // The plan outlives the module.
}

std::vector<std::string> recordNames(const backend::CompiledPlan &compiled) {
  std::vector<std::string> names;
  for (const LaunchRecord &record : compiled.plan.entries[0].buckets[0].records)
    names.push_back(recordName(record));
  return names;
}

TEST(Compile, LeavesModulesToTheHost) {
  const auto root = parse(R"(module @root class="Gated" {
  module @gate class="Gate" {
    param @weight : f32[8]
    graph @forward(%x: dynamic) -> dynamic {
      %w = get_attr @weight : f32[8]
      %0 = prim.refused() {reason="data decides", cause="data-flow"} : dynamic
      output %0
    }
  }
  graph @forward(%x: dynamic) -> dynamic {
    %0 = call_module @gate.forward(%x) : dynamic
    %1 = aten.neg(%0) : dynamic
    output %1
  }
})");
  CompileOptions options = forwardOptions();
  options.target = DeviceKind::Cpu;
  options.batches = {1, 3};
  options.passes = DefaultPasses{.hostModules = {"gate"}};
  options.hostTypes = [](const std::string &, llvm::ArrayRef<ir::TensorType> inputs) {
    return passes::HostResults{{inputs[0]}};
  };
  ir::Diagnostics diagnostics;
  const auto compiled = compile(*root, options, diagnostics);
  ASSERT_TRUE(compiled) << compiled.status().message();
  EXPECT_THAT(recordNames(*compiled), ElementsAre("host gate.forward", "aten::neg.out"));
  EXPECT_TRUE(compiled->plan.weights.empty());
  const Entry &entry = compiled->plan.entries[0];
  EXPECT_EQ(entry.buckets[1].tensors[0].sizes, (std::vector<int64_t>{3, 8}));
  EXPECT_FALSE(entry.rows.independent);
  EXPECT_EQ(entry.rows.op, "cgc.host_call");
  EXPECT_EQ(entry.rows.reason, "the host's module may combine different rows");
}

TEST(Compile, RunsTheDefaultPassesOfTheTarget) {
  CompileOptions options = forwardOptions();
  options.passes = DefaultPasses{.precision = DType::F16};
  const auto fused = compileTiny(options);
  ASSERT_TRUE(fused) << fused.status().message();
  EXPECT_EQ(fused->plan.target, DeviceKind::Cuda);
  EXPECT_EQ(fused->plan.precision, DType::F16);
  EXPECT_EQ(recordNames(*fused).size(), 1u) << toText(fused->plan);

  options.passes = DefaultPasses{.level = passes::OptLevel::O0, .precision = DType::F16};
  const auto separate = compileTiny(options);
  ASSERT_TRUE(separate) << separate.status().message();
  EXPECT_EQ(recordNames(*separate).size(), 2u) << toText(separate->plan);

  options = forwardOptions();
  options.target = DeviceKind::Cpu;
  const auto onCpu = compileTiny(options);
  ASSERT_TRUE(onCpu) << onCpu.status().message();
  EXPECT_THAT(recordNames(*onCpu), ElementsAre("aten::mm.out", "aten::gelu.out"));
  EXPECT_EQ(onCpu->plan.entries[0].name, "forward") << "the other method's input is not given";
}

TEST(Compile, WeightsOutliveTheModule) {
  const auto compiled = compileTiny(forwardOptions());
  ASSERT_TRUE(compiled) << compiled.status().message();
  ASSERT_EQ(compiled->weights.size(), 1u);
  for (std::byte byte : compiled->weights[0]->bytes())
    ASSERT_EQ(byte, std::byte{1});
}

TEST(Compile, MakesABucketForEachBatchSize) {
  CompileOptions options = forwardOptions();
  options.batches = {1, 5};
  size_t phases = 0;
  std::vector<std::string> begun;
  options.onPhase = [&](const std::string &phase, size_t count) {
    begun.push_back(phase);
    phases = count;
  };
  const auto compiled = compileTiny(options);
  ASSERT_TRUE(compiled) << compiled.status().message();
  ASSERT_EQ(compiled->plan.entries[0].buckets.size(), 2u);
  EXPECT_THAT(compiled->plan.entries[0].buckets[1].outputs[0].sizes, ElementsAre(5, 16));
  EXPECT_EQ(begun.size(), phases);
  EXPECT_EQ(begun[1], "specialize forward for x=f32[1,8] (dimension 0 is the batch size)");
}

TEST(Compile, EachBucketHasANameOfItsOwn) {
  CompileOptions options = forwardOptions();
  options.inputs.push_back({"y", DType::F32, {3}});
  options.batches = {1, 5};
  options.instrumentation.printAfter = {"specialize"};
  std::string text;
  llvm::raw_string_ostream log(text);
  options.log = &log;
  ASSERT_TRUE(compileTiny(options));
  for (const char *name : {"@forward_0(", "@forward_1(", "@negate_0(", "@negate_1("})
    EXPECT_THAT(text, HasSubstr(name));
}

TEST(Compile, ListsAnOffenderOfSeveralBucketsOnce) {
  const auto root = parse(R"(module @root class="Root" {
  graph @forward(%x: dynamic) -> dynamic {
    %0 = aten.fallback "aten::nonzero(Tensor self) -> Tensor" (%x) : dynamic loc("model.py":3)
    output %0
  }
})");
  CompileOptions options = forwardOptions();
  options.batches = {1, 5};
  ir::Diagnostics diagnostics;
  const Status status = compile(*root, options, diagnostics).status();
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_EQ(diagnostics.errors().size(), 1u) << diagnostics.render();
  const size_t first = status.message().find("model.py:3");
  EXPECT_NE(first, std::string::npos) << status.message();
  EXPECT_EQ(status.message().find("model.py:3", first + 1), std::string::npos);
}

TEST(Compile, WithoutReuseEachTensorHasMemoryOfItsOwn) {
  const auto root = parse(R"(module @root class="Root" {
  graph @forward(%x: dynamic) -> dynamic {
    %0 = aten.exp(%x) : dynamic
    %1 = aten.sin(%0) : dynamic
    %2 = aten.exp(%1) : dynamic
    %3 = aten.sin(%2) : dynamic
    output %3
  }
})");
  CompileOptions options = forwardOptions();
  uint64_t bytes[2] = {};
  for (const bool reuses : {false, true}) {
    options.reusesMemory = reuses;
    ir::Diagnostics diagnostics;
    const auto compiled = compile(*root, options, diagnostics);
    ASSERT_TRUE(compiled) << compiled.status().message();
    bytes[reuses] = compiled->plan.entries[0].buckets[0].arenaBytes;
  }
  EXPECT_GT(bytes[true], 0u);
  EXPECT_GT(bytes[false], bytes[true]);
}

TEST(Compile, AFlagStaysAtItsDefaultWhereAnotherMethodHasATensorOfItsName) {
  const auto root = parse(R"(module @root class="Root" {
  graph @forward(%x: dynamic, %mask: dynamic = 2) -> dynamic {
    %0 = aten.mul(%x, %mask) : dynamic
    output %0
  }
  graph @masked(%x: dynamic, %mask: dynamic) -> dynamic {
    %0 = aten.mul(%x, %mask) : dynamic
    output %0
  }
})");
  CompileOptions options = forwardOptions();
  options.inputs.push_back({"mask", DType::F32, {3, 8}});
  ir::Diagnostics diagnostics;
  const auto compiled = compile(*root, options, diagnostics);
  ASSERT_TRUE(compiled) << compiled.status().message();
  ASSERT_EQ(compiled->plan.entries.size(), 2u);
  EXPECT_EQ(compiled->plan.entries[0].buckets[0].inputs.size(), 1u);
  EXPECT_EQ(compiled->plan.entries[1].buckets[0].inputs.size(), 2u);
}

TEST(Compile, ReplacesTheDefaultPassesByText) {
  CompileOptions options = forwardOptions();
  options.target = DeviceKind::Cpu;
  options.passes = "inline,specialize,precision{to=bf16}";
  const auto compiled = compileTiny(options);
  ASSERT_TRUE(compiled) << compiled.status().message();
  EXPECT_EQ(compiled->plan.precision, DType::BF16);
  EXPECT_EQ(compiled->plan.entries[0].buckets[0].outputs[0].dtype, DType::BF16);
}

TEST(Compile, RunsRegisteredSubstitutions) {
  passes::OpSubstitution substitution;
  substitution.name = "relu for gelu";
  substitution.pattern = "graph @p(%x: dynamic) {\n  %0 = aten.gelu(%x) : dynamic\n  output %0\n}";
  substitution.replacement =
      "graph @p(%x: dynamic) {\n  %0 = aten.relu(%x) : dynamic\n  output %0\n}";
  CompileOptions options = forwardOptions();
  options.target = DeviceKind::Cpu;
  options.extensions.registerOpSubstitution(substitution);
  for (int run = 0; run < 2; ++run) { // The options do not change.
    const auto compiled = compileTiny(options);
    ASSERT_TRUE(compiled) << compiled.status().message();
    EXPECT_THAT(recordNames(*compiled), Not(testing::Contains("aten::gelu.out")));
  }
}

TEST(Compile, EachCallHasAnInstrumentationOfItsOwn) {
  CompileOptions options = forwardOptions();
  options.instrumentation.timePasses = true;
  std::string first, second;
  for (std::string *text : {&first, &second}) {
    llvm::raw_string_ostream log(*text);
    options.log = &log;
    ASSERT_TRUE(compileTiny(options));
    EXPECT_THAT(*text, AllOf(HasSubstr("specialize"), HasSubstr("select-linear")));
  }
  const auto lines = [](const std::string &text) { return std::ranges::count(text, '\n'); };
  EXPECT_EQ(lines(first), lines(second)) << "the second table has no rows of the first run";
}

TEST(Compile, RunsForSeveralModulesAtOnce) {
  const CompileOptions options = [] {
    CompileOptions limited = forwardOptions();
    limited.instrumentation.passLimit = 1000; // Counts the runs of one call.
    limited.log = &llvm::nulls();
    return limited;
  }();
  std::vector<std::string> plans(4);
  {
    std::vector<std::jthread> threads;
    for (std::string &plan : plans)
      threads.emplace_back([&] {
        if (const auto compiled = compileTiny(options))
          plan = toText(compiled->plan);
      });
  }
  EXPECT_NE(plans[0], "");
  for (const std::string &plan : plans)
    EXPECT_EQ(plan, plans[0]);
}

TEST(Compile, RefusesOptionsBeforeThereIsAModel) {
  CompileOptions options = forwardOptions();
  options.tf32 = true;
  EXPECT_TRUE(check(options).isOk());
  options.target = DeviceKind::Cpu;
  EXPECT_EQ(check(options).code(), Code::Usage);

  options = forwardOptions();
  options.passes = "inline,specialise";
  EXPECT_THAT(check(options).message(), HasSubstr("did you mean 'specialize'"));
  EXPECT_EQ(compileTiny(options).status().message(), check(options).message());

  options = forwardOptions();
  options.instrumentation.printAfter = {"no-such-pass"};
  EXPECT_THAT(check(options).message(), HasSubstr("there is no pass 'no-such-pass'"));
}

TEST(Compile, NamesWhatDoesNotFitTheModelWithoutWordsOfTheTool) {
  const auto messageFor = [](std::vector<InputSpec> inputs, std::vector<int64_t> batches,
                             std::vector<std::string> entries) {
    CompileOptions options;
    options.inputs = std::move(inputs);
    options.batches = std::move(batches);
    options.entries = std::move(entries);
    const Status status = compileTiny(options).status();
    EXPECT_FALSE(status.isOk());
    EXPECT_THAT(status.message(), Not(HasSubstr("--")));
    return status.message();
  };
  const InputSpec x{"x", DType::F32, {3, 8}};
  EXPECT_THAT(messageFor({x}, {}, {"negate"}), HasSubstr("negate(y) has no type for y"));
  EXPECT_THAT(messageFor({}, {}, {}), HasSubstr("forward(x), negate(y)"));
  EXPECT_THAT(messageFor({{"z", DType::F32, {1}}}, {}, {}),
              HasSubstr("no method of the model has an input 'z'"));
  EXPECT_THAT(messageFor({x}, {}, {"backward"}), HasSubstr("no method 'backward'"));
  EXPECT_THAT(messageFor({{"y", DType::F32, {}}}, {2}, {}), HasSubstr("input 'y' has none"));
  EXPECT_THAT(messageFor({x}, {int64_t(1) << 60}, {}), HasSubstr("input 'x' gets too large"));
  EXPECT_THAT(messageFor({{"x", DType::F32, {3, 5}}}, {2}, {}),
              AllOf(HasSubstr("cannot compile forward for x=f32[2,5]"),
                    HasSubstr("may not be what the model takes")));
}

} // namespace
} // namespace cgc::driver
