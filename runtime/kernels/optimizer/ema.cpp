// Checks launches of ema_f32.
#include "runtime/kernels/optimizer/ema.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<TensorGroups> checkEma(const LaunchView &launch) {
  CGC_TRY(checkSkip(launch.reads[0]));
  return checkTensorGroups(launch, kEmaShape);
}

CGC_KERNEL_CHECK(ema_f32, checkEma)

} // namespace cgc
