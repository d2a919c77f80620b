// embedding_*: which launches can write row statistics. Their launch shape is in warp_rows.h.
#pragma once

#include "runtime/kernels/rowwise/row_statistics.h"

namespace cgc {

/// Whether a launch of 16-bit elements can write the row statistics of its result: if all its
/// tensors begin at multiples of 16 bytes (`aligned`), eight lanes have the vectors of a group.
constexpr bool embeddingWritesRowStatistics(int64_t columns, bool aligned) {
  return aligned && columns % kStatisticsGroup == 0;
}

} // namespace cgc
