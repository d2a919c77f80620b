// The launch shape of mean_rows.
#pragma once

#include "runtime/base/dtype.h"

#include <cstdint>

namespace cgc {

inline constexpr uint32_t kMeanThreads = 256;
/// Threads side by side, 16 bytes of a row each; the others of a block have other rows.
inline constexpr uint32_t kMeanLanes = 8;

/// A block has so many columns of one batch.
inline uint64_t meanColumns(DType dtype) {
  return kMeanLanes * 16 / dtypeSize(dtype);
}
inline uint64_t meanSlices(uint64_t columns, DType dtype) {
  return (columns + meanColumns(dtype) - 1) / meanColumns(dtype);
}

} // namespace cgc
