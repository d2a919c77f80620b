// Tests of addBuckets(): which compilations fit a plan, and which weights they share with it.
#include "driver/add_buckets.h"
#include "driver/compile.h"

#include "ir/text/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace cgc::driver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A model whose parameter and constant have the names that the compiler gives to constants.
constexpr const char *kScaled = R"(module @root class="Scaled" {
  param @folded_scale : f32[4]
  const @constant : f32[4]

  graph @forward(%x: dynamic) -> dynamic {
    %w = get_attr @folded_scale : dynamic
    %c = get_attr @constant : dynamic
    %0 = aten.mul(%x, %w) : dynamic
    %1 = aten.mul(%0, %c) : dynamic
    output %1
  }
})";

CompileOptions cpuOptions(int64_t rows) {
  CompileOptions options;
  options.inputs = {{"x", DType::F32, {rows, 4}}};
  options.target = DeviceKind::Cpu;
  return options;
}

/// Compiles kScaled with these values in its parameter and in its constant.
backend::CompiledPlan compileScaled(const CompileOptions &options, float scale, float constant) {
  ir::Diagnostics diagnostics;
  const auto root = ir::parseModule(kScaled, "test.cgir", diagnostics);
  for (const auto &[name, value] : {std::pair("folded_scale", scale), {"constant", constant}}) {
    const ir::TensorType type = root->findParameter(name)->type;
    const std::vector<float> values(4, value);
    std::vector<std::byte> bytes(type.numBytes());
    std::memcpy(bytes.data(), values.data(), bytes.size());
    root->setParameterData(name, ir::TensorData::copyOf(type, bytes));
  }
  auto compiled = compile(*root, options, diagnostics);
  EXPECT_TRUE(compiled.isOk()) << compiled.status().message();
  return *std::move(compiled);
}

/// Adds a compilation to another one.
Result<ExtendedPlan> add(const backend::CompiledPlan &known, const backend::CompiledPlan &added) {
  std::vector<std::vector<std::byte>> weights;
  for (const auto &weight : known.weights)
    weights.emplace_back(weight->bytes().begin(), weight->bytes().end());
  CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::fromMemory(known.plan, std::move(weights)));
  auto extended = addBuckets(plan, added);
  if (extended.isOk())
    extended->weights.clear(); // They are borrowed from `plan`.
  return extended;
}

TEST(AddBuckets, SharesTheModelsWeightsAndKeepsOtherComputedOnes) {
  const auto extended = add(compileScaled(cpuOptions(1), 2, 3), compileScaled(cpuOptions(2), 2, 5));
  ASSERT_TRUE(extended.isOk()) << extended.status().message();
  std::vector<std::pair<std::string, bool>> weights;
  for (const Weight &weight : extended->plan.weights)
    weights.emplace_back(weight.name, weight.isComputed);
  EXPECT_THAT(weights, ElementsAre(std::pair("folded_scale", false), std::pair("constant", true),
                                   std::pair("constant.1", true)));
}

TEST(AddBuckets, SharesStatesByName) {
  const auto compiled = [](int64_t rows, const char *op) {
    ir::Diagnostics diagnostics;
    const auto root = ir::parseModule("graph @" + std::string(op) +
                                          "(%x: dynamic) -> dynamic {\n"
                                          "  %0 = aten." +
                                          op + "(%x) : dynamic\n  output %0\n}\n",
                                      "test.cgir", diagnostics);
    auto plan = compile(*root, cpuOptions(rows), diagnostics);
    EXPECT_TRUE(plan.isOk()) << plan.status().message();
    return *std::move(plan);
  };
  const auto names = [](const PlanData &plan) {
    std::vector<std::string> found;
    for (const State &state : plan.states)
      found.push_back(state.name);
    return found;
  };
  for (const auto &[known, states] :
       {std::pair(compiled(1, "neg"), 0), {compiled(1, "rand_like"), 2}}) {
    const backend::CompiledPlan added = compiled(2, "rand_like");
    const auto extended = add(known, added);
    ASSERT_TRUE(extended.isOk()) << extended.status().message();
    EXPECT_EQ(known.plan.states.size(), size_t(states));
    EXPECT_EQ(names(extended->plan), names(added.plan));
  }
  backend::CompiledPlan other = compiled(1, "rand_like");
  other.plan.states[0].role = StateRole::Buffer;
  const auto refused = add(other, compiled(2, "rand_like"));
  EXPECT_THAT(refused.status().message(), HasSubstr("state 'random:seed' is another one"));
}

TEST(AddBuckets, RefusesOtherValuesOfAModelsWeightWhateverItsName) {
  const auto extended = add(compileScaled(cpuOptions(1), 2, 3), compileScaled(cpuOptions(2), 4, 3));
  EXPECT_EQ(extended.status().code(), Code::Usage);
  EXPECT_THAT(extended.status().message(),
              HasSubstr("weight 'folded_scale' has other values than in the plan"));
}

TEST(AddBuckets, RefusesOtherValuesOfAConvertedWeight) {
  const auto half = [](int64_t rows, float scale) {
    CompileOptions options = cpuOptions(rows);
    options.passes = DefaultPasses{.precision = DType::BF16};
    return compileScaled(options, scale, 3);
  };
  const auto extended = add(half(1, 2), half(2, 4));
  EXPECT_EQ(extended.status().code(), Code::Usage);
  EXPECT_THAT(extended.status().message(), HasSubstr("has other values than in the plan"));
  EXPECT_TRUE(add(half(1, 2), half(2, 2)).isOk());
}

TEST(AddBuckets, RefusesBucketsThatRoundOtherwise) {
  const auto cuda = [](int64_t rows, bool tf32) {
    CompileOptions options = cpuOptions(rows);
    options.target = DeviceKind::Cuda;
    options.passes = DefaultPasses{.precision = DType::F32};
    options.tf32 = tf32;
    return compileScaled(options, 2, 3);
  };
  EXPECT_TRUE(cuda(1, true).plan.tf32);
  EXPECT_THAT(add(cuda(1, true), cuda(2, false)).status().message(),
              HasSubstr("another --precision, tf32;"));
  EXPECT_THAT(add(cuda(1, false), cuda(2, true)).status().message(),
              HasSubstr("another --precision, fp32;"));
  EXPECT_TRUE(add(cuda(1, true), cuda(2, true)).isOk());
}

} // namespace
} // namespace cgc::driver
