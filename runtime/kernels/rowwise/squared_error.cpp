// Checks launches of squared_error_f32.
#include "runtime/kernels/rowwise/squared_error.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<SquaredErrorLaunch> checkSquaredError(const LaunchView &launch) {
  const int64_t elements = launch.ints[0];
  if (elements <= 0)
    return refuseLaunch("the number of elements has to be positive");
  if (!hasShape(launch, kSquaredErrorBlocks, kSquaredErrorThreads))
    return refuseLaunch("the grid has to be {8, 1, 1}, the block {1024, 1, 1}, without shared "
                        "memory");
  bool vectors = elements % 4 == 0;
  for (const OperandView *operand : {&launch.reads[0], &launch.reads[1], &launch.writes[1]}) {
    if (!isDenseOf(*operand, DType::F32, elements))
      return refuseLaunch("x, target and gradient have to be dense f32[elements]");
    vectors &= isAligned(*operand, 16);
  }
  if (!isDenseOf(launch.writes[0], DType::F32, 1))
    return refuseLaunch("the loss has to be one f32");
  return SquaredErrorLaunch{elements, vectors};
}

CGC_KERNEL_CHECK(squared_error_f32, checkSquaredError)

} // namespace cgc
