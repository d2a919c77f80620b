// Fold: the nodes that fold, the nodes that do not, and the constants created. The evaluator here
// fills each result with a different number, to tell the results apart.
#include "passes/canonicalize/fold.h"

#include "tests/unit/passes/passes_test_util.h"

#include "gmock/gmock.h"

#include <cstring>

namespace cgc::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FakeEvaluator final : public ConstantEvaluator {
public:
  Result<std::vector<std::shared_ptr<const ir::TensorData>>>
  evaluate(const ir::Node &node,
           llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) override {
    for (auto &input : inputs)
      EXPECT_TRUE(input);
    ops.push_back(ir::opName(node.op()).str());
    if (fails)
      return Status(Code::Failed, "out of patience");
    std::vector<std::shared_ptr<const ir::TensorData>> results;
    for (const ir::Value &value : node.results()) {
      auto type = ir::TensorType::dense(value.tensor().dtype, value.tensor().sizes);
      std::vector<std::byte> bytes(type.numBytes(), std::byte(same ? 1 : ops.size()));
      results.push_back(ir::TensorData::copyOf(type, bytes));
    }
    return results;
  }

  std::vector<std::string> ops; ///< Evaluated ops, in order.
  bool fails = false, same = false;
};

/// Gives each parameter of the root bytes.
void fill(ir::Module &module) {
  for (const ir::Parameter &parameter : module.parameters()) {
    std::vector<std::byte> bytes(parameter.type.numBytes(), std::byte{9});
    module.setParameterData(parameter.name, ir::TensorData::copyOf(parameter.type, bytes));
  }
}

std::unique_ptr<ir::Module> model() {
  auto module = parse(R"(
module @Root class="Root" {
  param @w : f32[256,128]
  param @h : f16[256,128]
  param @mask : f32[16,16]
  graph @g(%x: f16[256,128]) {
    %w = get_attr @w : f32[256,128]
    %h = get_attr @h : f16[256,128]
    %mask = get_attr @mask : f32[16,16]
    %smaller = aten.to(%w) {dtype=f16} : f16[256,128]
    %larger = aten.to(%h) {dtype=f32} : f32[256,128]
    %view = aten.view(%w) {size=[128, 256]} : f32[128,256]
    %row = aten.select(%mask) {dim=0, index=3} : f32[16]
    %rows = aten.expand(%row) {size=[4, 16]} : f32[4,16][0,1]
    %neg = aten.neg(%rows) : f32[4,16]
    %range = aten.arange() {start=0, end=5} : i64[5]
    %input = aten.neg(%x) : f16[256,128]
    output %smaller, %larger, %view, %rows, %neg, %range, %input
  }
})");
  fill(*module);
  return module;
}

TEST(FoldTest, FoldsWhatShrinksAndKeepsViewsAndEnlargedWeights) {
  auto module = model();
  FakeEvaluator evaluator;
  ASSERT_TRUE(runPasses(*module, "fold,dce", {.evaluator = &evaluator}).isOk());
  std::vector<std::string> kinds;
  for (const ir::Arg &arg : module->findGraph("g")->output()->args()) {
    const ir::Node &node = *arg.value()->node();
    kinds.push_back(node.kind() == ir::NodeKind::GetAttr ? node.target()
                                                         : ir::opName(node.op()).str());
  }
  EXPECT_THAT(kinds, ElementsAre("folded_to", "aten.to", "aten.view", "aten.expand", "folded_neg",
                                 "folded_arange", "aten.neg"));
  EXPECT_THAT(evaluator.ops,
              ElementsAre("aten.to", "aten.select", "aten.expand", "aten.neg", "aten.arange"));
  const ir::Parameter *folded = module->findParameter("folded_to");
  ASSERT_TRUE(folded);
  EXPECT_EQ(folded->kind, ir::Parameter::Kind::Constant);
  EXPECT_EQ(folded->type, ir::TensorType::dense(DType::F16, {256, 128}));
  EXPECT_EQ(folded->data->bytes()[0], std::byte{1});
}

TEST(FoldTest, AWeightMayGrowByAnEighth) {
  auto module = parse(R"(
module @Root class="Root" {
  param @w : f32[256,80]
  graph @g() {
    %w = get_attr @w : f32[256,80]
    %little = aten.full() {size=[256, 10], fill_value=0.0, dtype=f32} : f32[256,10]
    %much = aten.full() {size=[256, 11], fill_value=0.0, dtype=f32} : f32[256,11]
    %0 = aten.cat([%w, %little]) {dim=1} : f32[256,90]
    %1 = aten.cat([%w, %much]) {dim=1} : f32[256,91]
    output %0, %1
  }
})");
  fill(*module);
  FakeEvaluator evaluator;
  ASSERT_TRUE(runPasses(*module, "fold,dce", {.evaluator = &evaluator}).isOk());
  const ir::Node &output = *module->findGraph("g")->output();
  EXPECT_EQ(output.args()[0].value()->node()->kind(), ir::NodeKind::GetAttr);
  EXPECT_TRUE(output.args()[1].value()->node()->is(ir::OpKind::Cat));
}

TEST(FoldTest, ResultsUpToTheLimitFold) {
  for (const auto &[pass, side] : {std::pair("fold", 128), {"fold{limit=64}", 4}}) {
    const auto square = [&](int more) {
      return "[" + std::to_string(side) + "," + std::to_string(side + more) + "]";
    };
    auto module =
        parse("module @Root class=\"Root\" {\n graph @g() {\n %0 = aten.full() {size=" + square(0) +
              ", fill_value=0.0} : f32" + square(0) + "\n %1 = aten.full() {size=" + square(1) +
              ", fill_value=0.0} : f32" + square(1) + "\n output %0, %1\n }\n}");
    FakeEvaluator evaluator;
    ASSERT_TRUE(runPasses(*module, pass, {.evaluator = &evaluator}).isOk());
    const ir::Node &output = *module->findGraph("g")->output();
    EXPECT_EQ(output.args()[0].value()->node()->kind(), ir::NodeKind::GetAttr) << pass;
    EXPECT_TRUE(output.args()[1].value()->node()->is(ir::OpKind::Full)) << pass;
  }
}

TEST(FoldTest, EqualResultsAreOneConstantAndOthersAreNot) {
  for (bool same : {true, false}) {
    auto module = parse(R"(
graph @g(%x: f32[5]) {
  %0 = aten.arange() {start=0, end=5} : i64[5]
  %1 = aten.arange() {start=0, end=5} : i64[5]
  output %0, %1
})");
    FakeEvaluator evaluator;
    evaluator.same = same;
    ASSERT_TRUE(runPasses(*module, "fold", {.evaluator = &evaluator}).isOk());
    EXPECT_EQ(module->parameters().size(), same ? 1u : 2u);
    const ir::Node &output = *module->findGraph("g")->output();
    EXPECT_EQ(output.args()[0].value()->node()->target() ==
                  output.args()[1].value()->node()->target(),
              same);
  }
}

/// A constant is dense, and the users of a strided result were compiled for its strides.
TEST(FoldTest, AStridedResultStaysAndWhatReadsItFolds) {
  auto module = parse(R"(
module @Root class="Root" {
  param @q : f32[1,2,3,4]
  graph @g(%x: f32[4]) {
    %q = get_attr @q : f32[1,2,3,4]
    %0 = aten.scaled_dot_product_attention(%q, %q, %q) : f32[1,2,3,4][24,4,8,1]
    %1 = aten.neg(%0) : f32[1,2,3,4]
    output %0, %1
  }
})");
  fill(*module);
  FakeEvaluator evaluator;
  ASSERT_TRUE(runPasses(*module, "fold", {.evaluator = &evaluator}).isOk());
  const ir::Node &output = *module->findGraph("g")->output();
  EXPECT_TRUE(output.args()[0].value()->node()->is(ir::OpKind::ScaledDotProductAttention));
  EXPECT_EQ(output.args()[1].value()->node()->target(), "folded_neg");
}

/// The op library may implement the op for the GPU only.
TEST(FoldTest, AnOpOfALibraryIsNotFoldedNorIsWhatReadsIt) {
  auto module = parse(R"(
module @Root class="Root" {
  param @w : f32[4]
  graph @g(%x: f32[4]) {
    %w = get_attr @w : f32[4]
    %0 = cgc.library_op([%w]) {op="acme.act"} : f32[4]
    %1 = aten.neg(%0) : f32[4]
    %2 = aten.neg(%w) : f32[4]
    output %1, %2
  }
})");
  fill(*module);
  FakeEvaluator evaluator;
  ASSERT_TRUE(runPasses(*module, "fold", {.evaluator = &evaluator}).isOk());
  EXPECT_THAT(evaluator.ops, ElementsAre("aten.neg"));
}

TEST(FoldTest, NothingIsFoldedWithoutAnEvaluatorOrWithoutBytes) {
  auto module = model();
  std::string before = ir::toString(*module);
  ASSERT_TRUE(runPasses(*module, "fold").isOk());
  EXPECT_EQ(ir::toString(*module), before);

  auto textOnly = parse(R"(
module @Root class="Root" {
  param @w : f32[4]
  graph @g(%x: f32[4]) {
    %w = get_attr @w : f32[4]
    %0 = aten.neg(%w) : f32[4]
    output %0
  }
})");
  FakeEvaluator evaluator;
  ASSERT_TRUE(runPasses(*textOnly, "fold", {.evaluator = &evaluator}).isOk());
  EXPECT_THAT(evaluator.ops, ElementsAre());
}

TEST(FoldTest, AFailingEvaluatorIsReported) {
  auto module = model();
  FakeEvaluator evaluator;
  evaluator.fails = true;
  Status status = runPasses(*module, "fold", {.evaluator = &evaluator});
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(), HasSubstr("pass 'fold': while folding %smaller: out of patience"));
}

/// Not with the evaluator, which would round each element to nearest.
TEST(FoldTest, CentersRowsItself) {
  auto module = parse(R"(
module @Root class="Root" {
  param @w : f32[1,4]
  graph @g() {
    %w = get_attr @w : f32[1,4]
    %0 = cgc.center_rows(%w) {dtype=f16} : f32[1,4]
    output %0
  }
})");
  const float values[] = {1, 2, 3, 6};
  module->setParameterData(
      "w", ir::TensorData::copyOf(
               ir::TensorType::dense(DType::F32, {1, 4}),
               llvm::ArrayRef(reinterpret_cast<const std::byte *>(values), sizeof(values))));
  FakeEvaluator evaluator;
  ASSERT_TRUE(runPasses(*module, "fold", {.evaluator = &evaluator}).isOk());
  EXPECT_TRUE(evaluator.ops.empty());
  const ir::Node &constant = *module->findGraph("g")->outputs().front().value()->node();
  ASSERT_EQ(constant.kind(), ir::NodeKind::GetAttr);
  float centered[4];
  const auto bytes = module->findParameter(constant.target())->data->bytes();
  ASSERT_EQ(bytes.size(), sizeof(centered));
  std::memcpy(centered, bytes.data(), sizeof(centered));
  EXPECT_THAT(centered, ElementsAre(-2, -1, 0, 3));
}

/// It is read in any case.
TEST(FoldTest, FoldsAMaskOfAttentionThatIsLargerThanItsParts) {
  auto module = parse(R"(
module @Root class="Root" {
  param @rows : f16[64,1,512]
  param @columns : f16[64,512,1]
  graph @g(%q: f16[64,1,512,8]) {
    %0 = get_attr @rows : f16[64,1,512]
    %1 = get_attr @columns : f16[64,512,1]
    %2 = aten.add(%0, %1) : f16[64,512,512]
    %3 = aten.view(%0) {size=[64, 1, 1, 512]} : f16[64,1,1,512]
    %4 = aten.view(%1) {size=[64, 1, 512, 1]} : f16[64,1,512,1]
    %5 = aten.slice(%3) {dim=0, start=0, end=8} : f16[8,1,1,512]
    %6 = aten.slice(%4) {dim=0, start=0, end=8} : f16[8,1,512,1]
    %7 = aten.add(%5, %6) : f16[8,1,512,512]
    %8 = aten.add(%3, %4) : f16[64,1,512,512]
    %9 = cgc.attention(%q, %q, %q, %7) {scale=1.0} : f16[64,512,8]
    %10 = cgc.attention(%q, %q, %q, %8) {scale=1.0} : f16[64,512,8]
    output %2, %9, %10
  }
})");
  fill(*module);
  FakeEvaluator evaluator;
  PassContext context{.evaluator = &evaluator};
  auto changed = FoldPass().run(*module->findGraph("g"), context);
  ASSERT_TRUE(changed.isOk());
  // The first mask, of 4 MiB, and what it reads. The other one has 32 MiB.
  EXPECT_THAT(evaluator.ops,
              ElementsAre("aten.view", "aten.slice", "aten.view", "aten.slice", "aten.add"));
}

TEST(FoldTest, FoldsAMaskOfWhichAttentionReadsASlice) {
  auto module = parse(R"(
module @Root class="Root" {
  param @row : f16[1,1,1,511]
  param @column : f16[1,1,512,1]
  graph @g(%q: f16[1,1,512,8], %k: f16[1,1,511,8]) {
    %0 = get_attr @row : f16[1,1,1,511]
    %1 = get_attr @column : f16[1,1,512,1]
    %2 = aten.add(%0, %1) : f16[1,1,512,511]
    %3 = aten.constant_pad_nd(%2) {pad=[0, 1]} : f16[1,1,512,512]
    %4 = aten.slice(%3) {dim=3, start=0, end=511} : f16[1,1,512,511][262144,262144,512,1]
    %5 = cgc.attention(%q, %k, %k, %4) {scale=1.0} : f16[1,512,8]
    output %5
  }
})");
  fill(*module);
  FakeEvaluator evaluator;
  PassContext context{.evaluator = &evaluator};
  ASSERT_TRUE(FoldPass().run(*module->findGraph("g"), context).isOk());
  EXPECT_THAT(evaluator.ops, ElementsAre("aten.add", "aten.constant_pad_nd"));
}

} // namespace
} // namespace cgc::passes
