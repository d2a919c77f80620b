// Moments of the rows of a matrix, from which product_norm has their mean and variance.
#pragma once

#include <cstdint>

namespace cgc {

/// For each 64 columns of a row, or the rest, there is their sum and the sum of their squares, in
/// f32 and of the elements as they are stored: [rows, momentGroups(columns), 2].
inline constexpr int64_t kMomentGroup = 64;
constexpr int64_t momentGroups(int64_t columns) {
  return columns / kMomentGroup + (columns % kMomentGroup != 0);
}

} // namespace cgc
