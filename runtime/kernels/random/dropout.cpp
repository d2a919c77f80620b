// Checks launches of dropout_*.
#include "runtime/kernels/random/dropout.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<DropoutLaunch> checkDropout(const LaunchView &launch, DType dtype) {
  const OperandView &x = launch.reads[2], &y = launch.writes[0];
  const uint64_t elements = elementsOf(y);
  CGC_ASSIGN_OR_RETURN(UniformLaunch numbers, checkNumbers(launch, elements));
  if (!isDenseOf(x, dtype, elements) || !isDenseOf(y, dtype, elements))
    return refuseLaunch("x and y have to be dense, of as many elements");
  const double p = launch.floats[0];
  if (!(p >= 0 && p < 1))
    return refuseLaunch("p has to be from 0 to below 1");
  const uint64_t vector = 4 * dtypeSize(dtype);
  numbers.vectors = isAligned(x, vector) && isAligned(y, vector);
  return DropoutLaunch{numbers, float(p), float(1 / (1 - p))};
}

CGC_KERNEL_CHECK(dropout_f32, checkDropout, DType::F32)
CGC_KERNEL_CHECK(dropout_f16, checkDropout, DType::F16)
CGC_KERNEL_CHECK(dropout_bf16, checkDropout, DType::BF16)

} // namespace cgc
