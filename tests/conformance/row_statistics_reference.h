// Row statistics computed on the host, for tests of the kernels that write and read them.
#pragma once

#include "runtime/kernels/rowwise/row_statistics.h"
#include "tests/conformance/kernel_fixture.h"

namespace cgc::test {

/// The row statistics of x [rows, columns]: the sum and the sum of squares of each group of a row.
inline std::vector<double> rowStatisticsOf(const std::vector<double> &x, int64_t rows) {
  const int64_t columns = std::ssize(x) / rows, groups = statisticsGroups(columns);
  std::vector<double> statistics(rows * groups * 2);
  for (int64_t i = 0; i < std::ssize(x); ++i) {
    double *const of = &statistics[(i / columns * groups + i % columns / kStatisticsGroup) * 2];
    of[0] += x[i];
    of[1] += x[i] * x[i];
  }
  return statistics;
}

/// Memory for the row statistics of a matrix.
inline HostTensor emptyRowStatistics(int64_t rows, int64_t columns) {
  return emptyTensor(DType::F32, {rows, statisticsGroups(columns), 2});
}

/// Expects `statistics` to be those of `y` as it is stored, up to the error of sums in f32.
inline void expectRowStatisticsOf(const HostTensor &y, int64_t rows, const HostTensor &statistics) {
  std::vector<double> stored;
  for (uint64_t i = 0; i < y.elements(); ++i)
    stored.push_back(y.at(i));
  const std::vector<double> want = rowStatisticsOf(stored, rows);
  ASSERT_EQ(statistics.elements(), want.size());
  for (uint64_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(statistics.at(i), want[i], 1e-5 * (1 + want[i / 2 * 2 + 1])) << "statistic " << i;
}

} // namespace cgc::test
