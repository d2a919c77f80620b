// Tests of host tensors: random inputs, conversions and comparison.
#include "tools/cgc/io/tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace cgc::tool {
namespace {

using testing::ElementsAre;

/// An input "x" whose elements index `rows` rows.
IoTensor indices(std::vector<int64_t> sizes, int64_t rows) {
  return {"x", DType::I64, sizes, {{rows, 0, {sizes[0]}, {1}}}};
}

/// Another implementation of the 64-bit Mersenne Twister computed the expected values.
TEST(Tensors, RandomValuesAreTheSameOnEveryMachine) {
  EXPECT_THAT(toDoubles(randomInput({"x", DType::F32, {4}}, 0)),
              ElementsAre(0x1.91c83ap-2, -0x1.5f90d8p-1, 0x1.1c1e8ep-1, -0x1.28ddeep+0));
  EXPECT_THAT(toDoubles(randomInput({"x", DType::F64, {2}}, 7)),
              ElementsAre(0.10728852427564561, 0.6026894852984697));
  EXPECT_THAT(toDoubles(randomInput(indices({6}, 49408), 0)),
              ElementsAre(7895, 49019, 1955, 29521, 26793, 2824));
  EXPECT_THAT(toDoubles(randomInput({"x", DType::Bool, {8}}, 0)),
              ElementsAre(0, 1, 0, 1, 1, 0, 1, 0));
}

TEST(Tensors, RandomFloatsAreNormal) {
  const auto values = toDoubles(randomInput({"x", DType::F32, {20000}}, 3));
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 20000;
  double variance = 0;
  for (double value : values)
    variance += (value - mean) * (value - mean) / 20000;
  EXPECT_NEAR(mean, 0, 0.03);
  EXPECT_NEAR(variance, 1, 0.04);
  // A normal distribution has 68.3 % within one standard deviation and 4.6 % beyond two.
  const auto past = [&](double bound) {
    return std::ranges::count_if(values, [&](double value) { return std::abs(value) > bound; }) /
           20000.0;
  };
  EXPECT_NEAR(past(1), 0.317, 0.015);
  EXPECT_NEAR(past(2), 0.046, 0.006);
}

TEST(Tensors, RandomIntegersFillTheirRange) {
  const auto values = toDoubles(randomInput(indices({1000}, 7), 3));
  std::vector<int> seen(7, 0);
  for (double value : values) {
    ASSERT_TRUE(value >= 0 && value < 7 && value == std::floor(value)) << value;
    ++seen[static_cast<size_t>(value)];
  }
  for (int count : seen)
    EXPECT_GT(count, 0);
  for (double value : toDoubles(randomInput({"x", DType::I32, {100}}, 3)))
    EXPECT_TRUE(value == 0 || value == 1) << value;
}

TEST(Tensors, SeedDecides) {
  const IoTensor input{"x", DType::F32, {8}};
  EXPECT_EQ(randomInput(input, 1).bytes, randomInput(input, 1).bytes);
  EXPECT_NE(randomInput(input, 1).bytes, randomInput(input, 2).bytes);
}

TEST(Tensors, ConversionRoundsToNearestEven) {
  HostTensor tensor = makeTensor("", DType::F32, {5});
  const float values[] = {1.0f, 1.00390625f, 1.01171875f, -3.0e38f, 65520.0f};
  std::memcpy(tensor.bytes.data(), values, sizeof values);
  // bf16 has 8 significant bits: 1 + 2^-8 is a tie and rounds to the even 1; 1 + 3 * 2^-8 rounds
  // up.
  const auto bf16 = toDoubles(convertFloats(tensor, DType::BF16));
  EXPECT_EQ(bf16[0], 1.0);
  EXPECT_EQ(bf16[1], 1.0);
  EXPECT_EQ(bf16[2], 1.015625);
  const auto f16 = toDoubles(convertFloats(tensor, DType::F16));
  EXPECT_EQ(f16[1], 1.00390625);
  EXPECT_TRUE(std::isinf(f16[3]) && std::isinf(f16[4]));
}

TEST(Tensors, Closeness) {
  const Closeness same = compareValues({3, 4}, {3, 4});
  EXPECT_EQ(same.maxAbs, 0);
  EXPECT_EQ(same.relativeL2, 0);
  EXPECT_DOUBLE_EQ(same.cosine, 1);
  const Closeness other = compareValues({3, 4.5}, {3, 4});
  EXPECT_DOUBLE_EQ(other.maxAbs, 0.5);
  EXPECT_DOUBLE_EQ(other.relativeL2, 0.1);
  EXPECT_LT(other.cosine, 1);
  EXPECT_DOUBLE_EQ(compareValues({-3, -4}, {3, 4}).cosine, -1);
  EXPECT_EQ(compareValues({0, 0}, {0, 0}).cosine, 1);
  EXPECT_EQ(compareValues({1, 2}, {0, 0}).cosine, 0);
  EXPECT_EQ(compareValues({0, 0}, {1, 2}).cosine, 0);
  EXPECT_EQ(compareValues({1}, {0}).relativeL2, 1);
}

TEST(Tensors, ClosenessIsNanWhereAValueIs) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = HUGE_VAL;
  for (double bad : {kNan, kInf}) {
    EXPECT_TRUE(std::isnan(compareValues({1, bad}, {1, 2}).relativeL2));
    EXPECT_TRUE(std::isnan(compareValues({1, 2}, {1, bad}).relativeL2));
    // Equal infinities do not count as close, either.
    EXPECT_TRUE(std::isnan(compareValues({bad}, {bad}).maxAbs));
  }
}

} // namespace
} // namespace cgc::tool
