// embedding: which launches can write moments. warp_rows.h: their shape.
#pragma once

#include "runtime/kernels/rowwise/row_statistics.h"

namespace cgc {

/// Whether a launch of 16-bit elements can write the moments of its result's rows: if all its
/// tensors begin at multiples of 16 bytes (`aligned`), eight lanes have the vectors of a group.
constexpr bool embeddingWritesMoments(int64_t columns, bool aligned) {
  return aligned && columns % kMomentGroup == 0;
}

} // namespace cgc
