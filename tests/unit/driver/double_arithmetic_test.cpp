// computeInDouble: each element is rounded once, operands are broadcast, and other calls are left
// to kernels or LibTorch.
#include "driver/double_arithmetic.h"

#include "ir/text/text.h"
#include "llvm/ADT/APFloat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace cgc::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Inputs = std::vector<std::shared_ptr<const ir::TensorData>>;

template <class T>
std::shared_ptr<const ir::TensorData> tensor(DType dtype, const ir::Dims &sizes,
                                             const std::vector<T> &values) {
  return ir::TensorData::copyOf(
      ir::TensorType::dense(dtype, sizes),
      {reinterpret_cast<const std::byte *>(values.data()), values.size() * sizeof(T)});
}
auto doubles(const ir::Dims &sizes, const std::vector<double> &values) {
  return tensor(DType::F64, sizes, values);
}

/// The bits of the result of the first call in a graph with these inputs and this body; nothing if
/// it is not computed.
template <class T>
std::vector<T> computed(const std::string &inputs, const std::string &call, const Inputs &values) {
  ir::Diagnostics diagnostics;
  const auto root = ir::parseModule("module @root {\ngraph @f(" + inputs + ") {\n  %0 = " + call +
                                        "\n  output %0\n}\n}\n",
                                    "test.cgir", diagnostics);
  EXPECT_TRUE(root) << diagnostics.render();
  if (!root)
    return {};
  const ir::Value *result = root->findGraph("f")->output()->args()[0].value();
  const auto data = computeInDouble(*result->node(), values);
  std::vector<T> elements(data ? data->bytes().size() / sizeof(T) : 0);
  if (data) {
    EXPECT_EQ(data->type().sizes, result->tensor().sizes);
    EXPECT_EQ(data->type().dtype, result->tensor().dtype);
    std::memcpy(elements.data(), data->bytes().data(), data->bytes().size());
  }
  return elements;
}

/// The bits of `value` in a format of 16 bits, by LLVM.
uint16_t rounded(double value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool isInexact = false;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &isInexact);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

TEST(DoubleArithmetic, CastsTo16BitsRoundOnce) {
  // Rounded to f32 before, these would be ties, which go to the even neighbor.
  std::vector<double> values = {1 + 0x1p-11 + 0x1p-40,
                                1 + 3 * 0x1p-11 - 0x1p-40,
                                1 + 0x1p-8 + 0x1p-40,
                                -(1 + 0x1p-11 + 0x1p-40),
                                0x1p-25 + 0x1p-60,
                                65520 - 0x1p-20,
                                65520,
                                1e300,
                                -1e300,
                                0.0,
                                -0.0,
                                1e-300,
                                -1e-300,
                                INFINITY};
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(-30, 18), sign(-1, 1);
  for (int i = 0; i < 20000; ++i) {
    // Near a number of 11 or 8 bits, or halfway between two.
    const double coarse = std::ldexp(std::floor(std::ldexp(std::exp2(exponent(random)), 12)), -12);
    values.push_back(std::copysign(coarse * (1 + sign(random) * 0x1p-42), sign(random)));
  }
  const auto count = static_cast<int64_t>(values.size());
  const std::string sizes = "[" + std::to_string(count) + "]";
  const Inputs input = {doubles({count}, values)};
  const auto half =
      computed<uint16_t>("%x: f64" + sizes, "aten.to(%x) {dtype=f16} : f16" + sizes, input);
  const auto brain =
      computed<uint16_t>("%x: f64" + sizes, "aten.to(%x) {dtype=bf16} : bf16" + sizes, input);
  ASSERT_EQ(half.size(), values.size());
  ASSERT_EQ(brain.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(half[i], rounded(values[i], llvm::APFloat::IEEEhalf())) << values[i];
    EXPECT_EQ(brain[i], rounded(values[i], llvm::APFloat::BFloat())) << values[i];
  }
}

TEST(DoubleArithmetic, NaNStaysNaN) {
  const auto half = computed<uint16_t>("%x: f64[1]", "aten.to(%x) {dtype=f16} : f16[1]",
                                       {doubles({1}, {std::nan("")})});
  ASSERT_EQ(half.size(), 1u);
  EXPECT_GT(half[0] & 0x7fff, 0x7c00);
}

TEST(DoubleArithmetic, CastsFromEachFloatAreExact) {
  EXPECT_THAT(computed<double>("%x: f32[2]", "aten.to(%x) {dtype=f64} : f64[2]",
                               {tensor<float>(DType::F32, {2}, {0.1f, -3})}),
              ElementsAre(static_cast<double>(0.1f), -3));
  EXPECT_THAT(computed<double>("%x: f16[3]", "aten.to(%x) {dtype=f64} : f64[3]",
                               {tensor<uint16_t>(DType::F16, {3}, {0x3c01, 0x0001, 0xfbff})}),
              ElementsAre(1 + 0x1p-10, 0x1p-24, -65504));
  EXPECT_THAT(computed<double>("%x: bf16[1]", "aten.to(%x) {dtype=f64} : f64[1]",
                               {tensor<uint16_t>(DType::BF16, {1}, {0xbf81})}),
              ElementsAre(-(1 + 0x1p-7)));
  EXPECT_THAT(computed<float>("%x: f64[1]", "aten.to(%x) {dtype=f32} : f32[1]",
                              {doubles({1}, {1 + 0x1p-24 + 0x1p-50})}),
              ElementsAre(1 + 0x1p-23f));
}

TEST(DoubleArithmetic, OperandsAreBroadcast) {
  const auto x = doubles({2, 2}, {1, 2, 3, 4}), c = doubles({2, 1}, {10, 20}),
             r = doubles({2}, {5, 7});
  const char *const inputs = "%x: f64[2,2], %c: f64[2,1], %r: f64[2]";
  EXPECT_THAT(computed<double>(inputs, "aten.mul(%x, %c) : f64[2,2]", {x, c}),
              ElementsAre(10, 20, 60, 80));
  EXPECT_THAT(computed<double>(inputs, "aten.add(%r, %x) {alpha=2} : f64[2,2]", {r, x}),
              ElementsAre(7, 11, 11, 15));
  EXPECT_THAT(computed<double>(inputs, "aten.sub(%c, %r) : f64[2,2]", {c, r}),
              ElementsAre(5, 3, 15, 13));
  EXPECT_THAT(computed<double>(inputs, "aten.sub(%r, 0.5) {alpha=2} : f64[2]", {r}),
              ElementsAre(4, 6));
}

TEST(DoubleArithmetic, ComputesOneOperand) {
  EXPECT_THAT(computed<double>("%x: f64[2]", "aten.neg(%x) : f64[2]", {doubles({2}, {3, -0.5})}),
              ElementsAre(-3, 0.5));
  EXPECT_THAT(computed<double>("%x: f64[2]", "aten.rsqrt(%x) : f64[2]", {doubles({2}, {4, 0})}),
              ElementsAre(0.5, INFINITY));
}

TEST(DoubleArithmetic, PadsFromTheLastDimensionOn) {
  EXPECT_THAT(computed<double>("%x: f64[2,2]",
                               "aten.constant_pad_nd(%x) {pad=[1, 0, 0, 1], value=9} : f64[3,3]",
                               {doubles({2, 2}, {1, 2, 3, 4})}),
              ElementsAre(9, 1, 2, 9, 3, 4, 9, 9, 9));
}

TEST(DoubleArithmetic, LeavesOtherCallsAlone) {
  const auto x = doubles({2}, {1, 2});
  const auto f = tensor<float>(DType::F32, {2}, {1, 2});
  EXPECT_THAT(computed<double>("%x: f64[2]", "aten.exp(%x) : f64[2]", {x}), IsEmpty());
  EXPECT_THAT(
      computed<double>("%x: f64[2]", "aten.constant_pad_nd(%x) {pad=[-1, 0]} : f64[1]", {x}),
      IsEmpty());
  EXPECT_THAT(computed<float>("%x: f32[2]", "aten.neg(%x) : f32[2]", {f}), IsEmpty());
  EXPECT_THAT(computed<double>("%x: f64[2], %f: f32[2]", "aten.add(%x, %f) : f64[2]", {x, f}),
              IsEmpty());
  EXPECT_THAT(computed<int64_t>("%x: f64[2]", "aten.to(%x) {dtype=i64} : i64[2]", {x}), IsEmpty());
}

} // namespace
} // namespace cgc::driver
