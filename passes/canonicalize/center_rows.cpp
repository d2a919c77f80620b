// centerRows: rounds the rows of a weight so that they sum to nearly 0. Rounding each element to
// nearest is not enough: elements of one binade that were 16-bit parameters all have the same
// rounding error, which sums to hundreds of units over a row of 1024.
#include "passes/canonicalize/center_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

namespace cgc::passes {
namespace {

/// A 16-bit floating dtype.
struct Format {
  int digits, leastExponent; ///< Digits of the significand; exponent of the smallest normal number.

  /// Returns one unit in the last place of the finite `value`.
  float unitOf(float value) const {
    const int exponent = int(std::bit_cast<uint32_t>(value) >> 23 & 0xff) - 127;
    const int ofUnit = std::max(exponent, leastExponent) - (digits - 1);
    return std::bit_cast<float>(uint32_t(ofUnit + 127) << 23);
  }
};
constexpr Format kF16{11, -14};
/// bf16 has smaller normal numbers, but their unit would not be a normal f32 number.
constexpr Format kBF16{8, -119};

/// Rounds to a multiple of `unit`, a power of two, with ties to even: the addition pushes the
/// smaller digits out of the f32 significand.
float roundTo(float unit, float value) {
  return (value / unit + 0x1.8p23f - 0x1.8p23f) * unit;
}

/// Rounds the elements of one row, then moves some of them by one unit so that the row sums to
/// nearly 0, starting with those whose move costs least. Moving an element whose rounding error is
/// f units back across its exact value adds u^2 (1 - 2 f) to the squared error, for each unit u by
/// which the sum changes.
class Row {
public:
  Row(Format format, size_t columns) : format_(format), units_(columns), bins_(columns) {}

  /// Centers and rounds `row` in place.
  void center(std::span<float> row) {
    double sum = 0;
    for (const float value : row)
      sum += value;
    const auto mean = float(sum / double(row.size()));
    if (!std::isfinite(mean))
      return;
    double rest = 0;
    float largest = 0;
    for (size_t k = 0; k < row.size(); ++k) {
      row[k] -= mean;
      // An element that rounds up to a power of two gets the unit of the binade above.
      const float rounded = roundTo(format_.unitOf(row[k]), row[k]);
      units_[k] = format_.unitOf(rounded);
      rest += rounded;
      largest = std::max(largest, units_[k]);
    }
    if (!std::isfinite(rest))
      return;
    const float sign = rest > 0 ? -1 : 1; // Direction of the moves.
    std::array<double, kBins> units{};
    for (size_t k = 0; k < row.size(); ++k) {
      const float rounded = roundTo(units_[k], row[k]);
      const float cost = units_[k] + 2 * sign * (rounded - row[k]); // From 0 to twice the unit.
      row[k] = rounded;
      bins_[k] = uint8_t(std::clamp(int(cost / (2 * largest) * kBins), 0, int(kBins) - 1));
      units[bins_[k]] += units_[k];
    }
    double left = std::abs(rest);
    size_t whole = 0; // Bins whose elements are all moved.
    for (double before = 0; whole < kBins && before + units[whole] <= left; ++whole)
      before += units[whole];
    const auto moveThoseOf = [&](auto test) {
      for (size_t k = 0; k < row.size(); ++k)
        if (test(bins_[k]) && units_[k] / 2 < left) {
          row[k] += sign * units_[k];
          left -= units_[k];
        }
    };
    moveThoseOf([&](size_t bin) { return bin < whole; });
    moveThoseOf([&](size_t bin) { return bin == whole; });
  }

private:
  static constexpr size_t kBins = 64; ///< Number of cost bins of equal width.

  const Format format_;
  std::vector<float> units_;
  std::vector<uint8_t> bins_;
};

} // namespace

std::shared_ptr<const ir::TensorData> centerRows(const ir::Node &node,
                                                 const ir::TensorData &weight) {
  const auto columns = size_t(weight.type().sizes[1]);
  std::vector<float> values(size_t(weight.type().numElements()));
  std::memcpy(values.data(), weight.bytes().data(), weight.bytes().size());
  Row row(node.arg("dtype").as<DType>() == DType::F16 ? kF16 : kBF16, columns);
  for (size_t first = 0; first < values.size(); first += columns)
    row.center({values.data() + first, columns});
  return ir::TensorData::copyOf(ir::TensorType::dense(DType::F32, weight.type().sizes),
                                llvm::ArrayRef(reinterpret_cast<const std::byte *>(values.data()),
                                               values.size() * sizeof(float)));
}

} // namespace cgc::passes
