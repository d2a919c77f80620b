// Checks launches of elementwise_* and copy.
#include "runtime/kernels/pointwise/elementwise.h"

#include "runtime/kernels/kernel_checks.h"

#include <algorithm>

namespace cgc {
namespace {

/// Whether copy converts from and to `dtype`: the same as in withType() of elementwise.cu.
bool isConverted(DType dtype) {
  return dtype != DType::F64 && dtype != DType::I16 && dtype != DType::I8;
}

} // namespace

Result<StridedLayout> checkElementwise(const LaunchView &launch, DType dtype) {
  const OperandView &y = launch.writes[0], &x = launch.reads[0], &z = launch.reads[1];
  CGC_TRY(checkStridedLaunch(launch));
  if (!x.isPresent())
    return refuseLaunch("x is absent");
  if (launch.ints[0] < 0 || launch.ints[0] >= kNumElementwiseOps)
    return refuseLaunch("there is no op of this number");
  const auto op = static_cast<ElementwiseOp>(launch.ints[0]);
  if (z.isPresent() && !isBinary(op))
    return refuseLaunch("the op takes one operand");
  if (!isFloating(dtype) && (!takesIntegers(op) || !represents(dtype, launch.floats[0])))
    return refuseLaunch("the op has no function of integers, or the number is none");
  const OperandView *operands[] = {&y, &x, &z};
  for (const OperandView *operand : operands)
    if (operand->isPresent() && operand->dtype != dtype)
      return refuseLaunch("the operands and the result have to be of one dtype");
  return stridedLayout(operands, int64_t(16 / dtypeSize(dtype)));
}

Result<StridedLayout> checkCopy(const LaunchView &launch) {
  const OperandView &y = launch.writes[0], &x = launch.reads[0];
  CGC_TRY(checkStridedLaunch(launch));
  if (!x.isPresent())
    return refuseLaunch("x is absent");
  if (x.dtype != y.dtype && (!isConverted(x.dtype) || !isConverted(y.dtype)))
    return refuseLaunch("there is no conversion between these dtypes");
  const OperandView *operands[] = {&y, &x};
  return stridedLayout(operands, int64_t(16 / std::max(dtypeSize(y.dtype), dtypeSize(x.dtype))));
}

CGC_FLOAT_KERNEL_CHECKS(elementwise, checkElementwise)
CGC_KERNEL_CHECK(elementwise_i64, checkElementwise, DType::I64)
CGC_KERNEL_CHECK(copy, checkCopy)

} // namespace cgc
