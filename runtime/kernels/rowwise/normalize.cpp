// Checks launches of normalize_*.
#include "runtime/kernels/rowwise/normalize.h"

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/rowwise/warp_rows.h"

namespace cgc {

Result<NormalizeLaunch> checkNormalize(const LaunchView &launch, DType dtype) {
  const OperandView &x = launch.reads[0], &y = launch.writes[0];
  CGC_ASSIGN_OR_RETURN(const DenseRows matrix, denseRows(x, y, dtype));
  const auto [rows, columns] = matrix;
  if (rows > INT32_MAX || !hasShape(launch, warpRowBlocks(rows), kWarpRowThreads))
    return refuseWarpRows();
  return NormalizeLaunch{rows, columns, hasVectorRows(x, columns) && hasVectorRows(y, columns)};
}

CGC_FLOAT_KERNEL_CHECKS(normalize, checkNormalize)

} // namespace cgc
