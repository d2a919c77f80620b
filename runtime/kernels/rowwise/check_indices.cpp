// Checks launches of check_indices.
#include "runtime/kernels/rowwise/check_indices.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<CheckIndicesNumbers> checkCheckIndices(const LaunchView &launch) {
  const OperandView &x = launch.reads[0], &report = launch.reads[1], &y = launch.writes[0];
  if (!x.isPresent() || x.dtype == DType::Bool || isFloating(x.dtype) || elementsOf(x) == 0)
    return refuseLaunch("x has to be integers");
  if (!isDenseOf(report, DType::I64, kReportNumbers) || !isDenseOf(y, DType::I64, kReportNumbers))
    return refuseLaunch("reports have to be dense, i64[6]");
  if (!hasShape(launch, 1, kCheckIndicesThreads))
    return refuseLaunch("the grid has to be {1, 1, 1}, the block {1024, 1, 1}, without shared "
                        "memory");
  const CheckIndicesNumbers numbers = CheckIndicesNumbers::of(launch.ints);
  if (numbers.check == 0)
    return refuseLaunch("the number of the check has to be other than 0");
  return numbers;
}

CGC_KERNEL_CHECK(check_indices, checkCheckIndices)

} // namespace cgc
