// centerRows: rows sum to nearly 0, elements are representable in the dtype and near their original
// values.
#include "passes/canonicalize/center_rows.h"

#include "tests/unit/passes/passes_test_util.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace cgc::passes {
namespace {

using Rows = std::vector<std::vector<float>>;

Rows centered(const Rows &rows, const std::string &dtype) {
  const std::string type =
      "f32[" + std::to_string(rows.size()) + "," + std::to_string(rows[0].size()) + "]";
  const auto module =
      parse("graph @g(%w: " + type + ") {\n%0 = cgc.center_rows(%w) {dtype=" + dtype +
            "} : " + type + "\noutput %0\n}");
  const ir::Node &node = *module->findGraph("g")->outputs().front().value()->node();
  std::vector<float> values;
  for (const auto &row : rows)
    values.insert(values.end(), row.begin(), row.end());
  const auto data = centerRows(
      node, *ir::TensorData::copyOf(
                ir::TensorType::dense(DType::F32, {int64_t(rows.size()), int64_t(rows[0].size())}),
                llvm::ArrayRef(reinterpret_cast<const std::byte *>(values.data()),
                               values.size() * sizeof(float))));
  std::memcpy(values.data(), data->bytes().data(), data->bytes().size());
  Rows result;
  for (size_t r = 0; r < rows.size(); ++r)
    result.emplace_back(values.begin() + int64_t(r * rows[0].size()),
                        values.begin() + int64_t((r + 1) * rows[0].size()));
  return result;
}

/// Rounds `value` to `digits` digits of significand.
float roundedTo(float value, int digits) {
  int exponent = 0;
  const float significand = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(significand, digits)), exponent - digits);
}

/// Returns normally distributed rows of deviation 0.03, roundedTo to `digits` digits like a
/// parameter, and multiplied by a scale if `scaled`.
Rows normalRows(int digits, bool scaled) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.03f);
  Rows rows(8, std::vector<float>(1024));
  for (auto &row : rows)
    for (size_t k = 0; k < row.size(); ++k)
      row[k] = roundedTo(normal(random), digits) * (scaled ? 0.7f + float(k) / 999 : 1);
  return rows;
}

TEST(CenterRows, SumToNothingAndAreNearWhatTheyWere) {
  for (const auto &[dtype, digits] : {std::pair("f16", 11), {"bf16", 8}})
    for (const bool scaled : {false, true}) {
      const Rows rows = normalRows(digits, scaled), result = centered(rows, dtype);
      const double unit = std::ldexp(0.125, 1 - digits); // One unit of an element above 0.125.
      for (size_t r = 0; r < rows.size(); ++r) {
        SCOPED_TRACE(std::string(dtype) + (scaled ? " scaled, row " : ", row ") +
                     std::to_string(r));
        double mean = 0, sum = 0, squares = 0, errors = 0;
        for (const float value : rows[r])
          mean += value / 1024.0;
        for (size_t k = 0; k < 1024; ++k) {
          const float value = result[r][k];
          EXPECT_EQ(value, roundedTo(value, digits));
          const double exact = rows[r][k] - mean, error = value - exact;
          EXPECT_LE(std::abs(error), 1.51 * std::ldexp(std::abs(exact), 1 - digits) + 1e-7) << k;
          sum += value;
          squares += exact * exact;
          errors += error * error;
        }
        EXPECT_LE(std::abs(sum), unit);
        // Rounding to nearest costs 2^-digits * 0.42. Elements that are roundedTo the other way add
        // a quarter, the cheapest ones first.
        EXPECT_LE(std::sqrt(errors / squares), std::ldexp(scaled ? 0.48 : 0.535, -digits));
      }
    }
}

/// A GEMM by centered rows, scaled by rstd, equals layer_norm followed by a GEMM, whatever the mean
/// of the input rows is. LibTorch rounds the normalized row, which costs 2^-digits * 0.42 of the
/// result.
TEST(CenterRows, GemmByCenteredRowsEqualsLayerNormThenGemm) {
  for (const auto &[dtype, digits] : {std::pair("f16", 11), {"bf16", 8}}) {
    const Rows rows = normalRows(digits, false), weights = centered(rows, dtype);
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    std::vector<float> noise(1024);
    for (float &value : noise)
      value = normal(random);
    for (const auto &[mean, bound] : {std::pair(0.0, 0.8), {1.0, 0.8}, {10.0, 1.0}}) {
      double errors = 0, squares = 0;
      for (size_t r = 0; r < rows.size(); ++r) {
        double exact = 0, sum = 0, ofNoise = 0;
        for (const float value : noise)
          ofNoise += value / 1024.0;
        for (size_t k = 0; k < 1024; ++k) {
          exact += (noise[k] - ofNoise) * rows[r][k];
          sum += (noise[k] + mean) * weights[r][k];
        }
        errors += (sum - exact) * (sum - exact);
        squares += exact * exact;
      }
      EXPECT_LE(std::sqrt(errors / squares), std::ldexp(bound, -digits)) << dtype << " " << mean;
    }
  }
}

TEST(CenterRows, TakesAnyRow) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(centered({{0, 0, 0}, {2, 2, 2}, {1, inf, 1}, {1, 2, 3}, {-4, 4, 3e-9f}}, "f16"),
            (Rows{{0, 0, 0}, {0, 0, 0}, {1, inf, 1}, {-1, 0, 1}, {-4, 4, 0}}));
  EXPECT_EQ(centered({{7}, {-1}}, "bf16"), (Rows{{0}, {0}}));
  EXPECT_EQ(centered({{0x1p127f, 0}, {0x1p-120f, 0}}, "bf16"),
            (Rows{{0x1p126f, -0x1p126f}, {0x1p-121f, -0x1p-121f}}));
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(centered({{most, -most, -most, -most}}, "bf16"),
            (Rows{{inf, -most / 2, -most / 2, -most / 2}}));
}

} // namespace
} // namespace cgc::passes
