// Checks launches of where.
#include "runtime/kernels/pointwise/where.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<StridedLayout> checkWhere(const LaunchView &launch) {
  const OperandView &y = launch.writes[0], &condition = launch.reads[0];
  CGC_TRY(checkStridedLaunch(launch));
  if (condition.isPresent() && condition.dtype != DType::Bool)
    return refuseLaunch("the condition has to be of bool");
  for (int k = 0; k < 2; ++k) {
    const OperandView &operand = launch.reads[1 + k];
    if (operand.isPresent() && operand.dtype != y.dtype)
      return refuseLaunch("the operands and the result have to be of one dtype");
    if (!operand.isPresent() && !represents(y.dtype, launch.floats[k]))
      return refuseLaunch("a number is none of the result's dtype");
  }
  const OperandView *operands[] = {&y, &condition, &launch.reads[1], &launch.reads[2]};
  return stridedLayout(operands, int64_t(16 / dtypeSize(y.dtype)));
}

CGC_KERNEL_CHECK(where, checkWhere)

} // namespace cgc
