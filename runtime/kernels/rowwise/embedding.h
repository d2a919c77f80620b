// embedding_*: the check, and which launches can write row statistics. The launch shape is in
// warp_rows.h.
#pragma once

#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/rowwise/row_statistics.h"

namespace cgc {

/// Whether a launch of 16-bit elements can write the row statistics of its result: if all its
/// tensors begin at multiples of 16 bytes (`aligned`), eight lanes have the vectors of a group.
constexpr bool embeddingWritesRowStatistics(int64_t columns, bool aligned) {
  return aligned && columns % kStatisticsGroup == 0;
}

/// A checked launch.
struct EmbeddingLaunch {
  int64_t rows, columns, tableRows, positionRows; ///< Row r gets position r % positionRows.
  bool vectors; ///< All rows begin and end at multiples of 16 bytes.
};
Result<EmbeddingLaunch> checkEmbedding(const LaunchView &launch, DType dtype);

} // namespace cgc
