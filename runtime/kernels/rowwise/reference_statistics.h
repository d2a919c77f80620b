// Row statistics (row_statistics.h) in the references of the kernels that write them.
#pragma once

#include "runtime/kernels/reference_elements.h"
#include "runtime/kernels/rowwise/row_statistics.h"

namespace cgc::reference {

/// Writes the statistics of row `row`, whose elements `y` are as they are stored.
template <class T>
void storeRowStatistics(const T *y, int64_t row, int64_t columns, float *statistics) {
  float *to = statistics + row * statisticsGroups(columns) * 2;
  for (int64_t first = 0; first < columns; first += kStatisticsGroup, to += 2) {
    const int64_t count = std::min(kStatisticsGroup, columns - first);
    const auto value = [&](int64_t i) { return toFloat(y[first + i]); };
    to[0] = sumOf(count, value);
    to[1] = sumOf(count, [&](int64_t i) { return value(i) * value(i); });
  }
}

} // namespace cgc::reference
