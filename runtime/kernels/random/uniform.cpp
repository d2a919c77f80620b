// Checks launches of uniform_f32.
#include "runtime/kernels/random/uniform.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<UniformLaunch> checkNumbers(const LaunchView &launch, uint64_t elements) {
  for (const size_t i : {0, 1})
    if (!isDenseOf(launch.reads[i], DType::I64, 1))
      return refuseLaunch("seed and offset have to be one i64");
  if (elements > uint64_t(4) << 32)
    return refuseLaunch("y has to be of at most 2^34 elements");
  if (launch.ints[0] < 0 || launch.ints[0] > UINT32_MAX)
    return refuseLaunch("the stream has to be from 0 to 2^32 - 1");
  if (launch.grid[0] > kUniformMaxBlocks || !hasShape(launch, launch.grid[0], kUniformThreads))
    return refuseLaunch("the grid has to be {1 to 65536, 1, 1}, the block {256, 1, 1}, without "
                        "shared memory");
  return UniformLaunch{elements, uint32_t(launch.ints[0])};
}

Result<UniformLaunch> checkUniform(const LaunchView &launch) {
  const OperandView &y = launch.writes[0];
  CGC_ASSIGN_OR_RETURN(UniformLaunch numbers, checkNumbers(launch, elementsOf(y)));
  if (!isDenseOf(y, DType::F32, numbers.elements))
    return refuseLaunch("y has to be dense f32");
  numbers.vectors = isAligned(y, 16);
  return numbers;
}

CGC_KERNEL_CHECK(uniform_f32, checkUniform)

} // namespace cgc
