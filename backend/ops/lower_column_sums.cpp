// Lowers sums of the rows of a matrix to column_sums_*.
#include "backend/ops/lower_column_sums.h"

#include "backend/kernels.h"
#include "runtime/kernels/rowwise/column_sums.h"

namespace cgc::backend {

bool launchColumnSums(const Place &input, const Place &result, BucketBuilder &builder) {
  if (result.dtype != DType::F32 || input.sizes.empty() || input.type().numElements() == 0)
    return false;
  const int64_t columns = input.sizes.back(), rows = input.type().numElements() / columns;
  return launch({.kernel = kernelNamed("column_sums", input.dtype),
                 .blocks = columnSumsBlocks(columns),
                 .threads = kColumnSumsThreads,
                 .reads = {input},
                 .writes = {result},
                 .ints = {rows, columns}},
                builder);
}

} // namespace cgc::backend
