// Checks launches of sum_rows_*.
#include "runtime/kernels/rowwise/sum_rows.h"

#include "runtime/kernels/kernel_checks.h"

#include <algorithm>

namespace cgc {

Result<SumRowsLaunch> checkSumRows(const LaunchView &launch, DType dtype) {
  const OperandView &x = launch.reads[0], &y = launch.writes[0];
  if (!x.isPresent() || x.dtype != dtype || x.sizes.size() != 3 ||
      std::ranges::find(x.sizes, 0) != x.sizes.end() || (!x.strides.empty() && x.strides[2] != 1))
    return refuseLaunch("x has to be [batches, rows, columns] with dense columns");
  const int64_t batches = x.sizes[0], rows = x.sizes[1], columns = x.sizes[2];
  const int64_t batchStride = x.strides.empty() ? rows * columns : x.strides[0],
                rowStride = x.strides.empty() ? columns : x.strides[1];
  const auto elements = checkedMul(batches, columns);
  if (!elements || (!isDenseOf(y, dtype, *elements) && !isDenseOf(y, DType::F32, *elements)))
    return refuseLaunch("y has to be dense, [batches, columns], of the dtype of x or f32");
  const uint64_t slices = sumRowsSlices(columns, dtype);
  const auto blocks = checkedMul(batches, int64_t(slices));
  if (!blocks || !hasShape(launch, *blocks, kSumRowsThreads))
    return refuseLaunch("the grid has to be {batches times slices, 1, 1}, the block {256, 1, 1}, "
                        "without shared memory");
  const bool vectors =
      hasVectorRows(x, columns) && hasVectorRows(x, batchStride) && hasVectorRows(x, rowStride);
  return SumRowsLaunch{rows, columns, batchStride, rowStride, slices, vectors};
}

CGC_FLOAT_KERNEL_CHECKS(sum_rows, checkSumRows)

} // namespace cgc
