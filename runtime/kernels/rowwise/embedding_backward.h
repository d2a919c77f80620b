// embedding_backward_*: the launch shape and the check.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

inline constexpr uint32_t kEmbeddingBackwardThreads = 256;
/// Columns of a CTA: four of each lane of a warp.
inline constexpr int64_t kEmbeddingBackwardColumns = 128;

/// A checked launch.
struct EmbeddingBackwardLaunch {
  int64_t rows, columns, tableRows;
  bool vectors; ///< Four elements of x can be read at a time.
};
Result<EmbeddingBackwardLaunch> checkEmbeddingBackward(const LaunchView &launch, DType dtype);

} // namespace cgc
