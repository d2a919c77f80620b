// Moments as the host computes them, for the tests of the kernels that write and read them.
#pragma once

#include "runtime/kernels/rowwise/row_statistics.h"
#include "tests/conformance/kernel_fixture.h"

namespace cgc::test {

/// Of each row, for each kMomentGroup columns: their sum, and the sum of their squares.
inline std::vector<double> momentsOf(const std::vector<double> &x, int64_t rows) {
  const int64_t columns = std::ssize(x) / rows, groups = momentGroups(columns);
  std::vector<double> moments(rows * groups * 2);
  for (int64_t i = 0; i < std::ssize(x); ++i) {
    double *const of = &moments[(i / columns * groups + i % columns / kMomentGroup) * 2];
    of[0] += x[i];
    of[1] += x[i] * x[i];
  }
  return moments;
}

/// Memory for the moments of a matrix.
inline HostTensor emptyMoments(int64_t rows, int64_t columns) {
  return emptyTensor(DType::F32, {rows, momentGroups(columns), 2});
}

/// Whether `moments` are those of the rows of `y` as it is stored, up to sums in f32.
inline void expectMomentsOf(const HostTensor &y, int64_t rows, const HostTensor &moments) {
  std::vector<double> stored;
  for (uint64_t i = 0; i < y.elements(); ++i)
    stored.push_back(y.at(i));
  const std::vector<double> want = momentsOf(stored, rows);
  ASSERT_EQ(moments.elements(), want.size());
  for (uint64_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(moments.at(i), want[i], 1e-5 * (1 + want[i / 2 * 2 + 1])) << "moment " << i;
}

} // namespace cgc::test
