// Selection: decisions that depend on the bytes of parameters: causal masks, and rows selected by
// an index. tests/filetests/passes tests the rest.
#include "passes/pipeline.h"
#include "tests/unit/passes/passes_test_util.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"

#include "gmock/gmock.h"

#include <cmath>
#include <cstring>

namespace cgc::passes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Appends `number` as a `dtype`.
void append(std::vector<std::byte> &bytes, DType dtype, double number) {
  uint64_t bits = 0;
  if (isFloating(dtype)) {
    llvm::APFloat value(number);
    bool inexact;
    value.convert(dtype == DType::F16    ? llvm::APFloat::IEEEhalf()
                  : dtype == DType::BF16 ? llvm::APFloat::BFloat()
                  : dtype == DType::F32  ? llvm::APFloat::IEEEsingle()
                                         : llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &inexact);
    bits = value.bitcastToAPInt().getZExtValue();
  } else {
    bits = static_cast<uint64_t>(static_cast<int64_t>(number));
  }
  const auto *first = reinterpret_cast<const std::byte *>(&bits);
  bytes.insert(bytes.end(), first, first + dtypeSize(dtype));
}

void setNumbers(ir::Module &module, llvm::StringRef parameter, llvm::ArrayRef<double> numbers) {
  ir::TensorType type = module.findParameter(parameter)->type;
  std::vector<std::byte> bytes;
  for (double number : numbers)
    append(bytes, type.dtype, number);
  module.setParameterData(parameter, ir::TensorData::copyOf(type, bytes));
}

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Runs select-attention with a mask [3, 4] of these numbers and returns the graph.
std::string selectMask(const std::string &dtype, llvm::ArrayRef<double> mask,
                       const std::string &queries = "") {
  std::string q = queries.empty() ? dtype : queries;
  auto module = parse(R"(
module @Root class="Root" {
  param @mask : )" + dtype +
                      R"([3,4]
  graph @g(%q: )" + q +
                      "[2,2,3,8], %k: " + q + R"([2,2,4,8]) {
    %mask = get_attr @mask : )" +
                      dtype + R"([3,4]
    %0 = aten.view(%mask) {size=[1, 1, 3, 4]} : )" +
                      dtype + R"([1,1,3,4]
    %1 = aten.scaled_dot_product_attention(%q, %k, %k, %0) : )" +
                      q + R"([2,2,3,8]
    %2 = aten.neg(%1) : )" +
                      q + R"([2,2,3,8]
    output %2
  }
})");
  setNumbers(*module, "mask", mask);
  EXPECT_TRUE(runPasses(*module, "select-attention").isOk());
  return ir::toString(*module->findGraph("g"));
}

TEST(SelectTest, ACausalMaskIsAFlag) {
  const double additive[] = {0, -kInf, -kInf, -kInf, 0, 0, -kInf, -kInf, 0, 0, 0, -kInf};
  for (const char *dtype : {"f32", "f16", "bf16", "f64"}) {
    std::string graph = selectMask(dtype, additive);
    EXPECT_THAT(graph, HasSubstr("cgc.attention(%q, %k, %k) {is_causal=true")) << dtype;
    EXPECT_THAT(graph, Not(HasSubstr("get_attr"))) << dtype;
  }
  const double boolean[] = {1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0};
  EXPECT_THAT(selectMask("bool", boolean, "f16"), HasSubstr("is_causal=true"));
}

TEST(SelectTest, AnyOtherMaskStays) {
  std::vector<double> mask = {0, -kInf, -kInf, -kInf, 0, 0, -kInf, -kInf, 0, 0, 0, -kInf};
  for (auto [index, number] : {std::pair(1, 0.0), {0, -kInf}, {3, -1e30}, {4, 1e-30}}) {
    std::vector<double> other = mask;
    other[index] = number;
    EXPECT_THAT(selectMask("f32", other), HasSubstr("cgc.attention(%q, %k, %k, %0) {scale"))
        << index;
  }
  const double boolean[] = {1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1};
  EXPECT_THAT(selectMask("bool", boolean, "f16"), HasSubstr("cgc.attention(%q, %k, %k, %0)"));
  const double upsideDown[] = {0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1};
  EXPECT_THAT(selectMask("bool", upsideDown, "f16"), HasSubstr("cgc.attention(%q, %k, %k, %0)"));
}

/// The graph after select-attention with the mask `declaration`, "param @mask : TYPE".
std::string selectMaskOf(const std::string &declaration, llvm::ArrayRef<double> mask) {
  const std::string type = declaration.substr(declaration.find(": ") + 2);
  auto module = parse("module @Root class=\"Root\" {\n  " + declaration + R"(
  graph @g(%q: f32[2,2,3,8]) {
    %mask = get_attr @mask : )" +
                      type + R"(
    %1 = aten.scaled_dot_product_attention(%q, %q, %q, %mask) : f32[2,2,3,8]
    %2 = aten.neg(%1) : f32[2,2,3,8]
    output %2
  }
})");
  if (!mask.empty())
    setNumbers(*module, "mask", mask);
  EXPECT_TRUE(runPasses(*module, "select-attention").isOk());
  return ir::toString(*module->findGraph("g"));
}
constexpr const char *kMasked = "cgc.attention(%q, %q, %q, %mask) {scale";

/// One row hides the same keys from all queries, and one column hides none.
TEST(SelectTest, AMaskOfOneRowOrColumnStays) {
  EXPECT_THAT(selectMaskOf("param @mask : f32[1,3]", {0, -kInf, -kInf}), HasSubstr(kMasked));
  EXPECT_THAT(selectMaskOf("param @mask : f32[3,1]", {0, 0, 0}), HasSubstr(kMasked));
}

TEST(SelectTest, AMaskOfSeveralMatricesIsCausalIfAllAre) {
  std::vector<double> masks = {0, -kInf, -kInf, 0, 0, -kInf, 0, 0, 0};
  masks.insert(masks.end(), masks.begin(), masks.end());
  EXPECT_THAT(selectMaskOf("param @mask : f32[2,1,3,3]", masks), HasSubstr("is_causal=true"));
  std::fill(masks.begin() + 9, masks.end(), 0);
  EXPECT_THAT(selectMaskOf("param @mask : f32[2,1,3,3]", masks), HasSubstr(kMasked));
}

/// Runs select-attention on the attention of 2 images of 3 windows of 2 heads. `position` is added
/// to some scores of each head, `hidden` to some of the windows'. Returns the graph.
std::string selectWindows(double position, double hidden) {
  auto module = parse(R"(
module @Root class="Root" {
  param @table : f16[3,2]
  param @rows : i64[4]
  param @mask : f16[3,2,2]
  graph @g(%q: f16[6,2,2,8], %k: f16[6,2,8,2]) {
    %table = get_attr @table : f16[3,2]
    %rows = get_attr @rows : i64[4]
    %mask = get_attr @mask : f16[3,2,2]
    %0 = aten.index(%table, [%rows]) : f16[4,2]
    %1 = aten.view(%0) {size=[1, 2, 2, 2]} : f16[1,2,2,2]
    %2 = aten.permute(%1) {dims=[0, 3, 1, 2]} : f16[1,2,2,2][8,1,4,2]
    %3 = aten.matmul(%q, %k) : f16[6,2,2,2]
    %4 = aten.add(%3, %2) : f16[6,2,2,2]
    %5 = aten.view(%4) {size=[2, 3, 2, 2, 2]} : f16[2,3,2,2,2]
    %6 = aten.view(%mask) {size=[1, 3, 1, 2, 2]} : f16[1,3,1,2,2]
    %7 = aten.add(%5, %6) : f16[2,3,2,2,2]
    %8 = aten.view(%7) {size=[6, 2, 2, 2]} : f16[6,2,2,2]
    %9 = aten.softmax(%8) {dim=-1} : f16[6,2,2,2]
    %10 = aten.matmul(%9, %q) : f16[6,2,2,8]
    %11 = aten.neg(%10) : f16[6,2,2,8]
    output %11
  }
})");
  setNumbers(*module, "table", {0, 1, position, 2, 3, 4});
  setNumbers(*module, "mask", {0, hidden, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_TRUE(runPasses(*module, "select-attention").isOk());
  return ir::toString(*module->findGraph("g"));
}

/// The mask has a batch for each window of an image.
TEST(SelectTest, ConstantsOfScoresAreAMask) {
  const std::string graph = selectWindows(5, -100);
  EXPECT_THAT(graph, HasSubstr("cgc.attention(%q, "));
  EXPECT_THAT(graph, HasSubstr(" : f16[3,2,2,2]"));
  EXPECT_THAT(graph, Not(HasSubstr("aten.softmax")));
}

/// Kernels read pairs of its elements.
TEST(SelectTest, RowsOfAMaskOfAnOddNumberOfKeysBeginAtPairs) {
  for (const auto &[dtype, isPadded] : {std::pair("f16", true), {"f32", false}}) {
    std::string text = R"(
module @Root class="Root" {
  param @mask : DTYPE[1,2,2,3]
  graph @g(%q: DTYPE[6,2,2,8], %k: DTYPE[6,2,8,3], %v: DTYPE[6,2,3,8]) {
    %mask = get_attr @mask : DTYPE[1,2,2,3]
    %0 = aten.matmul(%q, %k) : DTYPE[6,2,2,3]
    %1 = aten.add(%0, %mask) : DTYPE[6,2,2,3]
    %2 = aten.softmax(%1) {dim=-1} : DTYPE[6,2,2,3]
    %3 = aten.matmul(%2, %v) : DTYPE[6,2,2,8]
    output %3
  }
})";
    for (size_t at = 0; (at = text.find("DTYPE", at)) != std::string::npos;)
      text.replace(at, 5, dtype);
    auto module = parse(text);
    setNumbers(*module, "mask", std::vector<double>(12));
    ASSERT_TRUE(runPasses(*module, "select-attention").isOk());
    const std::string graph = ir::toString(*module->findGraph("g"));
    EXPECT_THAT(graph, HasSubstr("cgc.attention("));
    EXPECT_EQ(llvm::StringRef(graph).contains(" : f16[1,2,2,3][16,8,4,1]"), isPadded) << graph;
  }
}

/// A row of them would be NaN after a softmax, and 0 after attention.
TEST(SelectTest, ConstantsOfScoresThatMayBeInfiniteStay) {
  for (const auto &[position, hidden] :
       {std::pair(5.0, -kInf), {kInf, 0.0}, {std::nan(""), 0.0}, {-60000.0, -60000.0}})
    EXPECT_THAT(selectWindows(position, hidden), HasSubstr("aten.softmax"));
}

/// The factor of a squared error is one number.
TEST(SelectTest, GradientsWithAFactorForEachColumnStay) {
  auto module = parse(R"(module @Root class="Root" {
  param @c : f32[2]
  graph @g(%x: f32[4,2], %y: f32[4,2]) {
    %c = get_attr @c : f32[2]
    %0 = aten.sub(%x, %y) : f32[4,2]
    %1 = aten.mul(%0, %0) : f32[4,2]
    %2 = aten.sum(%1) : f32[]
    %3 = aten.expand(%c) {size=[4, 2]} : f32[4,2][0,1]
    %4 = aten.mul(%3, %0) : f32[4,2]
    %5 = aten.add(%4, %4) : f32[4,2]
    output %2, %5
  }
})");
  setNumbers(*module, "c", {0.5, 1});
  ASSERT_TRUE(runPasses(*module, "select-gradients").isOk());
  EXPECT_THAT(ir::toString(*module->findGraph("g")), Not(HasSubstr("cgc.squared_error")));
}

/// A step may change a state, so its first value says nothing.
TEST(SelectTest, AMaskThatIsAStateStays) {
  EXPECT_THAT(selectMaskOf("state @mask : f32[3,3]", {0, -kInf, -kInf, 0, 0, -kInf, 0, 0, 0}),
              HasSubstr(kMasked));
}

/// A model keeps one mask for its longest text and takes a part of it.
TEST(SelectTest, APartOfAMaskIsJudgedByItsOwnElements) {
  for (const auto &[start, isCausal] : {std::pair(1, true), {0, false}}) {
    const std::string rows =
        "{start=" + std::to_string(start) + ", end=" + std::to_string(start + 3) + "}";
    auto module = parse(R"(
module @Root class="Root" {
  param @mask : f32[4,3]
  graph @g(%q: f32[2,2,3,8]) {
    %mask = get_attr @mask : f32[4,3]
    %0 = aten.slice(%mask) )" +
                        rows +
                        R"( : f32[3,3]
    %1 = aten.scaled_dot_product_attention(%q, %q, %q, %0) : f32[2,2,3,8]
    %2 = aten.neg(%1) : f32[2,2,3,8]
    output %2
  }
})");
    setNumbers(*module, "mask", {7, 7, 7, 0, -kInf, -kInf, 0, 0, -kInf, 0, 0, 0});
    ASSERT_TRUE(runPasses(*module, "select-attention").isOk());
    EXPECT_EQ(ir::toString(*module).find("is_causal=true") != std::string::npos, isCausal) << start;
  }
}

TEST(SelectTest, AMaskWithoutBytesStays) {
  EXPECT_THAT(selectMaskOf("param @mask : f32[3,3]", {}), HasSubstr(kMasked));
}

std::string selectIndex(llvm::ArrayRef<double> batch, const std::string &argmax) {
  auto module = parse(R"(
module @Root class="Root" {
  const @batch : i64[3]
  graph @g(%x: f32[3,5,4], %t: i64[3,5], %u: i64[5,3], %w: i64[3,6]) {
    %batch = get_attr @batch : i64[3]
    %i = )" + argmax + R"( : i64[3]
    %0 = aten.index(%x, [%batch, %i]) : f32[3,4]
    output %0
  }
})");
  setNumbers(*module, "batch", batch);
  EXPECT_TRUE(runPasses(*module, "select-rows").isOk());
  return ir::toString(*module->findGraph("g"));
}

TEST(SelectTest, AnArgmaxOfEachTextNamesARow) {
  EXPECT_THAT(selectIndex({0, 1, 2}, "aten.argmax(%t) {dim=-1}"),
              HasSubstr("cgc.rows(%x, %i) : f32[3,4]"));
  EXPECT_THAT(selectIndex({0, 1, 2}, "aten.argmax(%u) {dim=0}"), HasSubstr("cgc.rows(%x, %i)"));
  // More columns than rows, so that the index may be out of bounds; not one row of each sequence.
  EXPECT_THAT(selectIndex({0, 1, 2}, "aten.argmax(%w) {dim=-1}"), HasSubstr("aten.index"));
  EXPECT_THAT(selectIndex({0, 2, 1}, "aten.argmax(%t) {dim=-1}"), HasSubstr("aten.index"));
  EXPECT_THAT(selectIndex({0, 1, 1}, "aten.argmax(%t) {dim=-1}"), HasSubstr("aten.index"));
}

TEST(SelectTest, APartOfAnIndexIsJudgedByItsOwnElements) {
  auto module = parse(R"(
module @Root class="Root" {
  const @batch : i64[4]
  graph @g(%x: f32[3,5,4], %t: i64[3,5]) {
    %batch = get_attr @batch : i64[4]
    %0 = aten.slice(%batch) {start=1, end=4} : i64[3]
    %1 = aten.argmax(%t) {dim=-1} : i64[3]
    %2 = aten.index(%x, [%0, %1]) : f32[3,4]
    output %2
  }
})");
  setNumbers(*module, "batch", {9, 0, 1, 2});
  EXPECT_TRUE(runPasses(*module, "select-rows").isOk());
  EXPECT_THAT(ir::toString(*module), HasSubstr("cgc.rows(%x, %1)"));
}

TEST(SelectTest, ThePrunedCausalMaskHasTheQuerysDType) {
  const std::pair<std::string, std::string> cases[] = {{"f32", "00000000000080ff0000000000000000"},
                                                       {"f16", "000000fc00000000"},
                                                       {"bf16", "000080ff00000000"}};
  for (const auto &[dtype, expected] : cases) {
    auto module =
        parse("module @Root class=\"Root\" {\n  graph @g(%q: " + dtype +
              "[2,2,2,8]) {\n    %0 = cgc.attention(%q, %q, %q) "
              "{is_causal=true, scale=1.0} : " +
              dtype + "[2,2,16]\n    %1 = cgc.rows(%0) : " + dtype +
              "[2,16]\n    %2 = cgc.attention(%q, %q, %q) {is_causal=true, scale=1.0} : " + dtype +
              "[2,2,16]\n    %3 = cgc.rows(%2) : " + dtype + "[2,16]\n    output %1, %3\n  }\n}");
    ASSERT_TRUE(runPasses(*module, "prune-rows").isOk());
    EXPECT_THAT(ir::toString(*module), Not(HasSubstr("is_causal")));
    ASSERT_EQ(module->parameters().size(), 1u); // Both calls share one mask.
    const ir::Parameter &mask = module->parameters()[0];
    EXPECT_EQ(dtypeName(mask.type.dtype), dtype);
    llvm::ArrayRef<std::byte> bytes = mask.data->bytes();
    EXPECT_EQ(llvm::toHex({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, true),
              expected);
  }
}

TEST(SelectTest, TheDefaultForCudaSelectsAndO0DoesNot) {
  const auto text = [](DeviceKind target, OptLevel level) {
    return toString(defaultPasses({.target = target, .level = level}));
  };
  EXPECT_THAT(text(DeviceKind::Cuda, OptLevel::O1), HasSubstr("," + toString(selectionPasses())));
  EXPECT_EQ(text(DeviceKind::Cuda, OptLevel::O0), text(DeviceKind::Cpu, OptLevel::O1));
  EXPECT_THAT(text(DeviceKind::Cpu, OptLevel::O1), Not(HasSubstr("select-")));
}

TEST(SelectTest, WantsTheFormsOfCanonicalize) {
  auto module = parse("graph @g(%x: f32[2,3]) {\n  %0 = aten.relu_(%x) : f32[2,3]\n  output %0\n}");
  Status status = runPasses(*module, "select-linear");
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("run the pass 'canonicalize' first"));
  auto dynamic = parse("graph @g(%x: dynamic) {\n  output %x\n}");
  EXPECT_THAT(runPasses(*dynamic, "select-linear").message(),
              HasSubstr("run the pass 'specialize' first"));
}

} // namespace
} // namespace cgc::passes
