// Checks launches of square_sums_f32 and gradient_norm_f32.
#include "runtime/kernels/optimizer/gradient_norm.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<TensorGroups> checkSquareSums(const LaunchView &launch) {
  CGC_ASSIGN_OR_RETURN(TensorGroups groups, checkTensorGroups(launch, kSquareSumsShape));
  if (!isDenseOf(launch.writes[0], DType::F32, groups.chunks))
    return refuseLaunch("the sums have to be dense, one f32 for each chunk");
  return groups;
}

Result<uint64_t> checkGradientNorm(const LaunchView &launch) {
  const uint64_t sums = elementsOf(launch.reads[0]);
  if (!isDenseOf(launch.reads[0], DType::F32, sums))
    return refuseLaunch("the sums have to be dense f32");
  if (!isDenseOf(launch.writes[0], DType::F32, 1))
    return refuseLaunch("the norm has to be one f32");
  if (!hasShape(launch, 1, kNormThreads))
    return refuseLaunch("the grid has to be {1, 1, 1}, the block {1024, 1, 1}, without shared "
                        "memory");
  return sums;
}

CGC_KERNEL_CHECK(square_sums_f32, checkSquareSums)
CGC_KERNEL_CHECK(gradient_norm_f32, checkGradientNorm)

} // namespace cgc
