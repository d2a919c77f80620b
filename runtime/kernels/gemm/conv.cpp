// The checks of the operands of conv_*: images, windows and W.
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/kernel_checks.h"

#include <cstdlib>

namespace cgc {

Result<ImageMapShape> convImageMap(const OperandView &image, DType dtype,
                                   const ConvWindows &windows, int64_t boxPixels) {
  if (!image.isPresent() || image.sizes.size() != 4 || image.sizes[3] % 8 != 0 ||
      elementsOf(image) == 0 || !isDenseOf(image, dtype, elementsOf(image)))
    return refuseLaunch("x has to be dense [images, height, width, channels], with a multiple of 8 "
                        "channels");
  constexpr int64_t kMost = 1 << 15; // No product below overflows.
  const std::span<const int64_t> sizes = image.sizes;
  for (const int64_t size : {sizes[1], sizes[2], sizes[3]})
    if (size > kMost)
      return refuseLaunch("an image has to be of up to 32768 x 32768 pixels and channels");
  ImageMapShape map = {
      .sizes = {uint64_t(sizes[3]), uint64_t(sizes[2]), uint64_t(sizes[1]), uint64_t(sizes[0])},
      .boxPixels = uint32_t(boxPixels)};
  for (size_t i = 0; i < 3; ++i)
    map.byteStrides[i] = (i == 0 ? 2 : map.byteStrides[i - 1]) * map.sizes[i];
  std::array<int64_t, 2> reach;
  for (const size_t i : {0, 1}) { // Height, width; a map has the width first.
    const int64_t kernel = windows.kernel[i], stride = windows.stride[i],
                  padding = windows.padding[i], dilation = windows.dilation[i],
                  result = windows.result[i];
    if (kernel < 1 || kernel > 256 || dilation == 0 || dilation < -256 || dilation > 256 ||
        stride < 1 || stride > 8 || padding < -127 || padding > 127 || result < 1 || result > kMost)
      return refuseLaunch("the windows are too large, too far apart, or empty");
    reach[i] = (kernel - 1) * std::abs(dilation);
    const int64_t before = padding + windows.firstPixel(i);
    map.lowerCorner[1 - i] = int(-before);
    map.upperCorner[1 - i] = int((result - 1) * stride - before - (sizes[1 + i] - 1));
    map.steps[1 - i] = uint32_t(stride);
  }
  CGC_TRY(checkImageMap(map, reach, image.alignment));
  return map;
}

Status checkConvOperands(const LaunchView &launch, DType dtype, const GemmTile &tile,
                         GemmLaunch &checked) {
  const auto [m, n, k, activation, gates] = GemmNumbers::of(launch.ints);
  const OperandView &image = launch.reads[kGemmX], &w = launch.reads[kGemmW];
  const ConvWindows windows = ConvWindows::of(launch.ints);
  CGC_ASSIGN_OR_RETURN(checked.image, convImageMap(image, dtype, windows, tile.xBoxRows()));
  const int64_t images = image.sizes[0], channels = image.sizes[3];
  if (images > m || images * windows.result[0] * windows.result[1] != m ||
      convK(windows, channels) != k)
    return refuseLaunch("M has to be the windows of all images, and K that of a window");
  const int64_t pixels = windows.kernel[0] * windows.kernel[1];
  if (!isDenseOf(w, dtype, uint64_t(n * pixels * channels)))
    return refuseLaunch("w has to be dense, [N, kernel height, kernel width, channels]");
  const uint64_t pixelBytes = uint64_t(channels) * 2;
  checked.w = {.rank = 3,
               .sizes = {uint64_t(channels), uint64_t(n), uint64_t(pixels)},
               .byteStrides = {pixelBytes * uint64_t(pixels), pixelBytes},
               .boxRows = tile.wBoxRows()};
  return Status::ok();
}

} // namespace cgc
