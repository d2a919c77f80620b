// Launch shape of mean_rows_*.
#pragma once

#include "runtime/base/dtype.h"

#include <cstdint>

namespace cgc {

inline constexpr uint32_t kMeanThreads = 256;
/// Threads with 16 adjacent bytes of a row each; the other threads of a CTA have other rows.
inline constexpr uint32_t kMeanLanes = 8;

/// Columns of one batch that a CTA computes.
inline uint64_t meanColumns(DType dtype) {
  return kMeanLanes * 16 / dtypeSize(dtype);
}
inline uint64_t meanSlices(uint64_t columns, DType dtype) {
  return (columns + meanColumns(dtype) - 1) / meanColumns(dtype);
}

} // namespace cgc
