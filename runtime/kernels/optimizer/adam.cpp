// Checks launches of adam_f32.
#include "runtime/kernels/optimizer/adam.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<TensorGroups> checkAdam(const LaunchView &launch) {
  CGC_TRY(checkOptimizerReads(launch));
  return checkTensorGroups(launch, kAdamShape);
}

CGC_KERNEL_CHECK(adam_f32, checkAdam)

} // namespace cgc
