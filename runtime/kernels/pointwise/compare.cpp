// Checks launches of compare_*.
#include "runtime/kernels/pointwise/compare.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<StridedLayout> checkCompare(const LaunchView &launch, DType dtype) {
  const OperandView &y = launch.writes[0], &x = launch.reads[0], &z = launch.reads[1];
  CGC_TRY(checkStridedLaunch(launch));
  if (!x.isPresent())
    return refuseLaunch("x is absent");
  if (launch.ints[0] < 0 || launch.ints[0] >= kNumCompareOps)
    return refuseLaunch("there is no op of this number");
  if (x.dtype != dtype || (z.isPresent() && z.dtype != dtype) || y.dtype != DType::Bool)
    return refuseLaunch("the operands have to be of one dtype, the result of bool");
  if (!z.isPresent() && !represents(dtype, launch.floats[0]))
    return refuseLaunch("the number is none of the operand's dtype");
  const OperandView *operands[] = {&y, &x, &z};
  return stridedLayout(operands, int64_t(16 / dtypeSize(dtype)));
}

CGC_FLOAT_KERNEL_CHECKS(compare, checkCompare)
CGC_KERNEL_CHECK(compare_i64, checkCompare, DType::I64)
CGC_KERNEL_CHECK(compare_i32, checkCompare, DType::I32)
CGC_KERNEL_CHECK(compare_bool, checkCompare, DType::Bool)

} // namespace cgc
