// Checks launches of softmax_*.
#include "runtime/kernels/rowwise/softmax.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<SoftmaxLaunch> checkSoftmax(const LaunchView &launch, DType dtype) {
  const OperandView &x = launch.reads[0], &y = launch.writes[0];
  const uint64_t elements = elementsOf(x);
  if (!isDenseOf(x, dtype, elements) || x.sizes.empty() || elements == 0)
    return refuseLaunch("x has to be dense, of one dimension or more");
  if (!isDenseOf(y, dtype, elements))
    return refuseLaunch("y has to be dense, of as many elements as x");
  const int64_t columns = x.sizes.back(), rows = static_cast<int64_t>(elements) / columns;
  if (rows > INT32_MAX || !hasShape(launch, softmaxBlocks(rows, columns), kSoftmaxThreads))
    return refuseLaunch("the grid has to be {ceil(rows / 4), 1, 1}, or {rows, 1, 1} for rows "
                        "longer than 1024, the block {128, 1, 1}, without shared memory");
  return SoftmaxLaunch{rows, columns};
}

CGC_FLOAT_KERNEL_CHECKS(softmax, checkSoftmax)

} // namespace cgc
