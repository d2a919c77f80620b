// Checks launches of argmax_*.
#include "runtime/kernels/rowwise/argmax.h"

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/rowwise/warp_rows.h"

namespace cgc {

Result<ArgmaxLaunch> checkArgmax(const LaunchView &launch, DType dtype) {
  const OperandView &x = launch.reads[0], &y = launch.writes[0];
  const uint64_t elements = elementsOf(x);
  if (!isDenseOf(x, dtype, elements) || x.sizes.empty() || elements == 0 ||
      x.sizes.back() >= INT32_MAX)
    return refuseLaunch("x has to be dense, of one dimension or more");
  const int64_t columns = x.sizes.back(), rows = static_cast<int64_t>(elements) / columns;
  if (!isDenseOf(y, DType::I64, rows))
    return refuseLaunch("y has to be dense i64, one element for each row");
  if (rows > INT32_MAX || !hasShape(launch, warpRowBlocks(rows), kWarpRowThreads))
    return refuseWarpRows();
  return ArgmaxLaunch{rows, columns};
}

CGC_FLOAT_KERNEL_CHECKS(argmax, checkArgmax)
CGC_KERNEL_CHECK(argmax_i64, checkArgmax, DType::I64)
CGC_KERNEL_CHECK(argmax_i32, checkArgmax, DType::I32)

} // namespace cgc
