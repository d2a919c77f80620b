// Checks launches of depthwise_conv_*, stem_conv_*, pool_* and pool_backward_*.
#include "runtime/kernels/images/images.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {
namespace {

/// The images and windows of a launch, of which `y` has the results, with `results` channels, by
/// default as many as the images.
Result<ImageLaunch> imagesOf(const LaunchView &launch, const OperandView &y, DType dtype,
                             int64_t results = 0) {
  const OperandView &image = launch.reads[0];
  if (!image.isPresent() || image.dtype != dtype || image.sizes.size() != 4 ||
      elementsOf(image) == 0 || elementsOf(image) > INT32_MAX)
    return refuseLaunch("the images have to be [images, height, width, channels], of up to 2^31 "
                        "elements");
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
  const auto channels = uint64_t(results != 0 ? results : image.sizes[3]);
  if (windowsOfAll > INT32_MAX || channels > INT32_MAX || windowsOfAll * channels > INT32_MAX ||
      !isDenseOf(y, dtype, windowsOfAll * channels))
    return refuseLaunch("the results have to be dense, [images, windows, channels], of up to 2^31 "
                        "elements");
  return ImageLaunch{image.sizes[0], image.sizes[1], image.sizes[2], image.sizes[3], windows};
}

/// The same of dense images.
Result<ImageLaunch> denseImagesOf(const LaunchView &launch, const OperandView &y, DType dtype,
                                  int64_t results = 0) {
  if (!launch.reads[0].strides.empty())
    return refuseLaunch("the images have to be dense, [images, height, width, channels]");
  return imagesOf(launch, y, dtype, results);
}

/// Whether the launch has this grid, whose y is within CUDA's limit, and this block along x.
bool hasGrid(const LaunchView &launch, const std::array<int64_t, 2> &grid, uint32_t threads,
             int64_t sharedBytes) {
  return launch.grid[0] == uint64_t(grid[0]) && launch.grid[1] == uint64_t(grid[1]) &&
         launch.grid[2] == 1 && grid[1] <= 65535 && launch.block[0] == threads &&
         launch.block[1] == 1 && launch.block[2] == 1 &&
         launch.sharedBytes == uint64_t(sharedBytes);
}

Status checkActivation(const LaunchView &launch) {
  return launch.ints[0] < 0 || launch.ints[0] >= kNumActivations
             ? refuseLaunch("there is no such activation")
             : Status::ok();
}

} // namespace

Result<DepthwiseLaunch> checkDepthwise(const LaunchView &launch, DType dtype) {
  const OperandView &w = launch.reads[1], &bias = launch.reads[2], &residual = launch.reads[3],
                    &y = launch.writes[0], &statistics = launch.writes[1];
  if (w.sizes.size() != 3 || w.sizes[2] < 2 || w.sizes[2] % 2 != 0)
    return refuseLaunch("w has to be [kernel height, kernel width, results], with an even number "
                        "of results");
  const int64_t results = w.sizes[2];
  CGC_ASSIGN_OR_RETURN(const ImageLaunch images, denseImagesOf(launch, y, dtype, results));
  const ConvWindows &windows = images.windows;
  const int64_t pixels = windows.kernel[0] * windows.kernel[1],
                perChannel = results / images.channels;
  if (images.channels % 2 != 0 || pixels > kDepthwiseMaxPixels)
    return refuseLaunch(
        "there has to be an even number of channels, and a window of up to 11 x 11");
  if (results % images.channels != 0 || (perChannel != 1 && perChannel % 2 != 0))
    return refuseLaunch("each channel has to have one result or an even number of them");
  if (w.sizes[0] != windows.kernel[0] || !isDenseOf(w, dtype, uint64_t(results * pixels)))
    return refuseLaunch("w has to be dense, [kernel height, kernel width, results]");
  if (!isAbsentOrDenseOf(bias, dtype, uint64_t(results)))
    return refuseLaunch("bias has to be dense, with one element for each result");
  if (!isAbsentOrDenseOf(residual, dtype, elementsOf(y)))
    return refuseLaunch("the residual has to be dense, of as many elements as y");
  for (const OperandView *of : {&launch.reads[0], &w, &bias, &residual, &y})
    if (!isAligned(*of, 4))
      return refuseLaunch("all tensors have to begin at multiples of 4 bytes");
  if (statistics.isPresent() &&
      !isRowStatisticsOf(statistics, elementsOf(y) / uint64_t(results), results))
    return refuseLaunch("row statistics have to be dense, two f32 for each 64 columns of a row");
  CGC_TRY(checkActivation(launch));
  const auto shape = DepthwiseShape::of(images.images, windows, images.channels, results);
  if (!hasGrid(launch, shape.grid, shape.threads, shape.sharedBytes))
    return refuseLaunch("grid, block and shared memory have to be those of DepthwiseShape");
  const bool vectors = hasVectorRows(launch.reads[0], images.channels) && hasVectorRows(w, results);
  return DepthwiseLaunch{images, shape, results, vectors, Activation(launch.ints[0])};
}

Result<StemLaunch> checkStem(const LaunchView &launch, DType dtype) {
  const OperandView &image = launch.reads[0], &w = launch.reads[1], &bias = launch.reads[2];
  if (w.sizes.size() != 4 || w.sizes[0] < 8 || w.sizes[0] % 8 != 0)
    return refuseLaunch("w has to be [results, kernel height, kernel width, channels], with a "
                        "multiple of 8 results");
  const int64_t results = w.sizes[0];
  CGC_ASSIGN_OR_RETURN(const ImageLaunch images,
                       imagesOf(launch, launch.writes[0], dtype, results));
  const ConvWindows &windows = images.windows;
  const StemShape shape = StemShape::of(windows, images.channels);
  if (images.channels > kStemMaxK || shape.k > kStemMaxK ||
      shape.sharedBytes() > kStemMaxSharedBytes)
    return refuseLaunch("a result has to be a sum of up to 256 products, and the windows of a tile "
                        "have to fit into shared memory");
  if (w.sizes[1] != windows.kernel[0] || w.sizes[2] != windows.kernel[1] ||
      w.sizes[3] != images.channels || !isDenseOf(w, dtype, uint64_t(results * shape.k)))
    return refuseLaunch("w has to be dense, [results, kernel height, kernel width, channels]");
  if (!isAbsentOrDenseOf(bias, dtype, uint64_t(results)))
    return refuseLaunch("bias has to be dense, with one element for each result");
  if (!isAligned(bias, 16) || !isAligned(launch.writes[0], 16))
    return refuseLaunch("bias and y have to begin at multiples of 16 bytes");
  CGC_TRY(checkActivation(launch));
  if (!hasGrid(launch, shape.grid(images.images, results), kImageThreads, shape.sharedBytes()))
    return refuseLaunch("the grid has to be StemShape::grid(), the block {256, 1, 1}, with "
                        "StemShape::sharedBytes()");
  StemLaunch checked{images, {}, results, false, Activation(launch.ints[0])};
  int64_t dense = 1;
  for (size_t i = 4; i-- > 0; dense *= image.sizes[i])
    checked.strides[i] = image.strides.empty() ? dense : image.strides[i];
  const auto isWhole = [](int64_t elements) { return elements % 8 == 0; };
  checked.vectors =
      checked.strides[2] == 1 && isWhole(images.width) && isAligned(image, 16) &&
      std::ranges::all_of(std::array{checked.strides[0], checked.strides[1], checked.strides[3]},
                          isWhole);
  return checked;
}

namespace {

/// The check of pool and pool_backward: `y` has the results of the windows, or their gradient.
Result<PoolLaunch> poolOf(const LaunchView &launch, const OperandView &y, DType dtype) {
  CGC_ASSIGN_OR_RETURN(const ImageLaunch images, denseImagesOf(launch, y, dtype));
  const PoolNumbers numbers = PoolNumbers::of(launch.ints);
  if (numbers.kind < 0 || numbers.kind > int64_t(PoolKind::Max) || numbers.countsPadding < 0 ||
      numbers.countsPadding > 1 || numbers.divisor < INT32_MIN || numbers.divisor > INT32_MAX)
    return refuseLaunch("there is no such pool");
  if (!hasShape(launch, launch.grid[0], kImageThreads) || launch.grid[0] == 0 ||
      launch.grid[0] > UINT32_C(1) << 16)
    return refuseLaunch("the grid has to be {up to 65536, 1, 1}, the block {256, 1, 1}, without "
                        "shared memory");
  const bool vectors =
      hasVectorRows(launch.reads[0], images.channels) && hasVectorRows(y, images.channels);
  return PoolLaunch{images, numbers, vectors};
}

} // namespace

Result<PoolLaunch> checkPool(const LaunchView &launch, DType dtype) {
  return poolOf(launch, launch.writes[0], dtype);
}

Result<PoolLaunch> checkPoolBackward(const LaunchView &launch, DType dtype) {
  const OperandView &dx = launch.writes[0];
  CGC_ASSIGN_OR_RETURN(PoolLaunch pool, poolOf(launch, launch.reads[1], dtype));
  if (!isDenseOf(dx, dtype, elementsOf(launch.reads[0])))
    return refuseLaunch("dx has to be dense, of as many elements as the images");
  pool.vectors &= hasVectorRows(dx, pool.channels);
  return pool;
}

CGC_KERNEL_CHECK(depthwise_conv_f16, checkDepthwise, DType::F16)
CGC_KERNEL_CHECK(depthwise_conv_bf16, checkDepthwise, DType::BF16)
CGC_KERNEL_CHECK(stem_conv_f16, checkStem, DType::F16)
CGC_KERNEL_CHECK(stem_conv_bf16, checkStem, DType::BF16)
CGC_FLOAT_KERNEL_CHECKS(pool, checkPool)
CGC_FLOAT_KERNEL_CHECKS(pool_backward, checkPoolBackward)

} // namespace cgc
