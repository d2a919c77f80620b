// Checks launches of patches_*.
#include "runtime/kernels/rowwise/patches.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<PatchesLaunch> checkPatches(const LaunchView &launch, DType dtype) {
  const OperandView &image = launch.reads[0], &y = launch.writes[0];
  const int64_t height = launch.ints[0], width = launch.ints[1];
  if (!isDenseOf(image, dtype, elementsOf(image)) || image.sizes.size() != 4 ||
      elementsOf(image) == 0)
    return refuseLaunch("the image has to be dense, [images, channels, height, width]");
  if (height < 1 || width < 1 || height > image.sizes[2] || width > image.sizes[3])
    return refuseLaunch("a patch has to be of the image's size or smaller");
  const int64_t down = image.sizes[2] / height, across = image.sizes[3] / width;
  const int64_t rows = image.sizes[0] * down * across, pixels = image.sizes[1] * height * width;
  if (!isDenseOf(y, dtype, elementsOf(y)) || y.sizes.size() != 2 || y.sizes[0] != rows ||
      y.sizes[1] < pixels || elementsOf(y) > INT32_MAX)
    return refuseLaunch("y has to be dense, [patches, columns], with a column for each element of "
                        "a patch");
  if (!hasShape(launch, launch.grid[0], kPatchesThreads) || launch.grid[0] > UINT32_C(1) << 16)
    return refuseLaunch("the grid has to be {up to 65536, 1, 1}, the block {128, 1, 1}, without "
                        "shared memory");
  const int64_t columns = y.sizes[1];
  return PatchesLaunch{across, down, height, width, pixels, columns, hasVectorRows(y, columns)};
}

CGC_FLOAT_KERNEL_CHECKS(patches, checkPatches)

} // namespace cgc
