// Checks launches of sgd_f32.
#include "runtime/kernels/optimizer/sgd.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<TensorGroups> checkSgd(const LaunchView &launch) {
  CGC_TRY(checkOptimizerReads(launch));
  return checkTensorGroups(launch, kSgdShape,
                           SgdNumbers::of(launch.ints, launch.floats).momentum != 0);
}

CGC_KERNEL_CHECK(sgd_f32, checkSgd)

} // namespace cgc
