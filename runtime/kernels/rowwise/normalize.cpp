// Checks launches of normalize_*.
#include "runtime/kernels/rowwise/normalize.h"

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/rowwise/warp_rows.h"

namespace cgc {

Result<NormalizeLaunch> checkNormalize(const LaunchView &launch, DType dtype) {
  const OperandView &x = launch.reads[0], &y = launch.writes[0];
  const uint64_t elements = elementsOf(x);
  if (!isDenseOf(x, dtype, elements) || x.sizes.empty() || elements == 0)
    return refuseLaunch("x has to be dense, of one dimension or more");
  if (!isDenseOf(y, dtype, elements))
    return refuseLaunch("y has to be dense, of as many elements as x");
  const int64_t columns = x.sizes.back(), rows = static_cast<int64_t>(elements) / columns;
  if (rows > INT32_MAX || !hasShape(launch, warpRowBlocks(rows), kWarpRowThreads))
    return refuseWarpRows();
  return NormalizeLaunch{rows, columns, hasVectorRows(x, columns) && hasVectorRows(y, columns)};
}

CGC_FLOAT_KERNEL_CHECKS(normalize, checkNormalize)

} // namespace cgc
