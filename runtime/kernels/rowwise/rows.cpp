// Checks launches of rows_*.
#include "runtime/kernels/rowwise/rows.h"

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/rowwise/warp_rows.h"

#include <algorithm>

namespace cgc {

Result<RowsLaunch> checkRows(const LaunchView &launch, DType dtype) {
  const OperandView &x = launch.reads[0], &indices = launch.reads[1], &y = launch.writes[0];
  if (!x.isPresent() || x.dtype != dtype || x.sizes.size() != 3 ||
      std::ranges::find(x.sizes, 0) != x.sizes.end() || x.sizes[0] > INT32_MAX ||
      (!x.strides.empty() && x.strides[2] != 1))
    return refuseLaunch("x has to be [batches, rows, columns] with dense columns");
  const int64_t batches = x.sizes[0], rows = x.sizes[1], columns = x.sizes[2];
  const int64_t batchStride = x.strides.empty() ? rows * columns : x.strides[0],
                rowStride = x.strides.empty() ? columns : x.strides[1];
  if (indices.isPresent() && !isIndicesOf(indices, batches))
    return refuseLaunch("indices have to be dense i64 or i32, one for each batch");
  const auto elements = checkedMul(batches, columns);
  if (!elements || !isDenseOf(y, dtype, *elements))
    return refuseLaunch("y has to be dense, [batches, columns]");
  if (!hasShape(launch, warpRowBlocks(batches), kWarpRowThreads))
    return refuseWarpRows();
  const bool vectors = hasVectorRows(x, columns) && hasVectorRows(x, batchStride) &&
                       hasVectorRows(x, rowStride) && hasVectorRows(y, columns);
  return RowsLaunch{batches, rows, columns, batchStride, rowStride, vectors};
}

CGC_FLOAT_KERNEL_CHECKS(rows, checkRows)

} // namespace cgc
