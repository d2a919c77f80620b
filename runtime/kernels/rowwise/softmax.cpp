// Checks launches of softmax_* and log_softmax_*.
#include "runtime/kernels/rowwise/softmax.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<SoftmaxLaunch> checkSoftmax(const LaunchView &launch, DType dtype) {
  const OperandView &x = launch.reads[0], &y = launch.writes[0];
  CGC_ASSIGN_OR_RETURN(const DenseRows matrix, denseRows(x, y, dtype));
  const auto [rows, columns] = matrix;
  if (rows > INT32_MAX || !hasShape(launch, softmaxBlocks(rows, columns), kSoftmaxThreads))
    return refuseLaunch("the grid has to be {ceil(rows / 4), 1, 1}, or {rows, 1, 1} for rows "
                        "longer than 1024, the block {128, 1, 1}, without shared memory");
  return SoftmaxLaunch{rows, columns};
}

CGC_FLOAT_KERNEL_CHECKS(softmax, checkSoftmax)
CGC_FLOAT_KERNEL_CHECKS(log_softmax, checkSoftmax)

} // namespace cgc
