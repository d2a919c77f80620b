// Checks launches of uniform_f32.
#include "runtime/kernels/optimizer/uniform.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<UniformLaunch> checkUniform(const LaunchView &launch) {
  for (const OperandView &number : launch.reads)
    if (!isDenseOf(number, DType::I64, 1))
      return refuseLaunch("seed and offset have to be one i64");
  const OperandView &y = launch.writes[0];
  const uint64_t elements = elementsOf(y);
  if (elements > uint64_t(4) << 32 || !isDenseOf(y, DType::F32, elements))
    return refuseLaunch("y has to be dense f32, of at most 2^34 elements");
  if (launch.ints[0] < 0 || launch.ints[0] > UINT32_MAX)
    return refuseLaunch("the stream has to be from 0 to 2^32 - 1");
  if (launch.grid[0] > kUniformMaxBlocks || !hasShape(launch, launch.grid[0], kUniformThreads))
    return refuseLaunch("the grid has to be {1 to 65536, 1, 1}, the block {256, 1, 1}, without "
                        "shared memory");
  return UniformLaunch{elements, uint32_t(launch.ints[0]), isAligned(y, 16)};
}

CGC_KERNEL_CHECK(uniform_f32, checkUniform)

} // namespace cgc
