// Checks launches of depthwise_conv_* and pool_*.
#include "runtime/kernels/images/images.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {
namespace {

/// The images and windows of a launch whose result has `channels` of the images.
Result<ImageLaunch> imagesOf(const LaunchView &launch, DType dtype) {
  const OperandView &image = launch.reads[0], &y = launch.writes[0];
  if (!isDenseOf(image, dtype, elementsOf(image)) || image.sizes.size() != 4 ||
      elementsOf(image) == 0 || elementsOf(image) > INT32_MAX)
    return refuseLaunch("the images have to be dense, [images, height, width, channels], of up to "
                        "2^31 elements");
  const ConvWindows windows = ConvWindows::of(launch.ints);
  constexpr int64_t kMost = 1 << 20; // No product below, or in the kernel, overflows.
  for (const size_t i : {0, 1})
    if (windows.kernel[i] < 1 || windows.kernel[i] > 1024 || windows.stride[i] < 1 ||
        windows.stride[i] > 1024 || windows.padding[i] < 0 || windows.padding[i] > 1024 ||
        windows.dilation[i] < 1 || windows.dilation[i] > 1024 || windows.result[i] < 1 ||
        windows.result[i] > kMost)
      return refuseLaunch("kernel, stride, padding and dilation have to be of up to 1024, and "
                          "there has to be a window");
  const uint64_t windowsOfAll =
      uint64_t(image.sizes[0]) * uint64_t(windows.result[0]) * uint64_t(windows.result[1]);
  if (windowsOfAll > INT32_MAX || windowsOfAll * uint64_t(image.sizes[3]) > INT32_MAX ||
      !isDenseOf(y, dtype, windowsOfAll * uint64_t(image.sizes[3])))
    return refuseLaunch("y has to be dense, [images, windows, channels], of up to 2^31 elements");
  return ImageLaunch{image.sizes[0], image.sizes[1], image.sizes[2], image.sizes[3], windows};
}

} // namespace

Result<DepthwiseLaunch> checkDepthwise(const LaunchView &launch, DType dtype) {
  CGC_ASSIGN_OR_RETURN(const ImageLaunch images, imagesOf(launch, dtype));
  const ConvWindows &windows = images.windows;
  const int64_t pixels = windows.kernel[0] * windows.kernel[1];
  if (images.channels % 2 != 0 || pixels > 121)
    return refuseLaunch(
        "there has to be an even number of channels, and a window of up to 11 x 11");
  const OperandView &w = launch.reads[1], &bias = launch.reads[2], &residual = launch.reads[3];
  if (!isDenseOf(w, dtype, uint64_t(images.channels * pixels)))
    return refuseLaunch("w has to be dense, [channels, kernel height, kernel width]");
  if (!isAbsentOrDenseOf(bias, dtype, uint64_t(images.channels)))
    return refuseLaunch("bias has to be dense, with one element for each channel");
  if (!isAbsentOrDenseOf(residual, dtype, elementsOf(launch.writes[0])))
    return refuseLaunch("the residual has to be dense, of as many elements as y");
  for (const OperandView *of : {&launch.reads[0], &bias, &residual, &launch.writes[0]})
    if (!isAligned(*of, 4))
      return refuseLaunch("all tensors have to begin at multiples of 4 bytes");
  if (launch.ints[0] < 0 || launch.ints[0] >= kNumActivations)
    return refuseLaunch("there is no such activation");
  const auto grid = depthwiseGrid(images.images, windows, images.channels);
  if (launch.grid[0] != grid[0] || launch.grid[1] != grid[1] || launch.grid[2] != 1 ||
      launch.block[0] != kImageThreads || launch.block[1] != 1 || launch.block[2] != 1 ||
      launch.sharedBytes != 0 || grid[1] > 65535)
    return refuseLaunch("the grid has to be depthwiseGrid(), the block {256, 1, 1}, without shared "
                        "memory");
  return DepthwiseLaunch{images, Activation(launch.ints[0])};
}

Result<PoolLaunch> checkPool(const LaunchView &launch, DType dtype) {
  CGC_ASSIGN_OR_RETURN(const ImageLaunch images, imagesOf(launch, dtype));
  const PoolNumbers numbers = PoolNumbers::of(launch.ints);
  if (numbers.kind < 0 || numbers.kind > int64_t(PoolKind::Max) || numbers.countsPadding < 0 ||
      numbers.countsPadding > 1 || numbers.divisor < INT32_MIN || numbers.divisor > INT32_MAX)
    return refuseLaunch("there is no such pool");
  if (!hasShape(launch, launch.grid[0], kImageThreads) || launch.grid[0] == 0 ||
      launch.grid[0] > UINT32_C(1) << 16)
    return refuseLaunch("the grid has to be {up to 65536, 1, 1}, the block {256, 1, 1}, without "
                        "shared memory");
  const bool vectors = hasVectorRows(launch.reads[0], images.channels) &&
                       hasVectorRows(launch.writes[0], images.channels);
  return PoolLaunch{images, numbers, vectors};
}

CGC_KERNEL_CHECK(depthwise_conv_f16, checkDepthwise, DType::F16)
CGC_KERNEL_CHECK(depthwise_conv_bf16, checkDepthwise, DType::BF16)
CGC_FLOAT_KERNEL_CHECKS(pool, checkPool)

} // namespace cgc
