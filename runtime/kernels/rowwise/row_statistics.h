// Row statistics: partial sums of a matrix's rows, from which gemm_norm computes mean and rstd.
#pragma once

#include <cstdint>

namespace cgc {

/// Columns of a group. For each group of a row (the last may have fewer columns) the statistics are
/// the sum of the elements and the sum of their squares, in f32, of the elements as they are
/// stored: f32[rows, statisticsGroups(columns), 2].
inline constexpr int64_t kStatisticsGroup = 64;
constexpr int64_t statisticsGroups(int64_t columns) {
  return columns / kStatisticsGroup + (columns % kStatisticsGroup != 0);
}

} // namespace cgc
