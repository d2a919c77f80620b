// Checks launches of conv_weight_gradient_* and sum_parts_f32.
#include "runtime/kernels/gemm/conv_weight_gradient.h"

#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<WeightGradientLaunch> checkConvWeightGradient(const LaunchView &launch, DType dtype,
                                                     int64_t warpgroups) {
  const OperandView &grad = launch.reads[0], &image = launch.reads[1], &parts = launch.writes[0];
  const int64_t splits = launch.ints[0];
  const ConvWindows windows = ConvWindows::of(launch.ints);
  CGC_ASSIGN_OR_RETURN(const ImageMapShape map,
                       convImageMap(image, dtype, windows, kWeightGradientBox));
  constexpr int64_t kMost = int64_t(1) << 30; // Leaves room for a step in 32 bits.
  const std::span<const int64_t> sizes = image.sizes;
  if (!grad.isPresent() || grad.sizes.empty() || grad.sizes.back() % 8 != 0 ||
      grad.sizes.back() < 8 || grad.sizes.back() > kMost || sizes[0] > kMost)
    return refuseLaunch("grad has to be [windows, results], with a multiple of 8 results");
  const int64_t results = grad.sizes.back(), pixels = windows.kernel[0] * windows.kernel[1],
                all = sizes[0] * windows.result[0] * windows.result[1],
                elements = results * pixels * sizes[3];
  if (all > kMost || !isDenseOf(grad, dtype, uint64_t(all) * uint64_t(results)))
    return refuseLaunch("grad has to be dense, with a row for each of up to 2^30 windows");
  const auto shape = WeightGradientShape::of(all, results, pixels, sizes[3]);
  if (shape.warpgroups != warpgroups)
    return refuseLaunch("up to 64 results are for the kernel of 64, more for that of 128");
  if (splits < 1 || splits > std::min(shape.steps, int64_t(65535)) || elements > INT32_MAX ||
      !isDenseOf(parts, DType::F32, uint64_t(splits * elements)) || !isAligned(parts, 8))
    return refuseLaunch("there have to be dense parts, f32[splits, results, kernel height, kernel "
                        "width, channels], and as many steps as splits");
  if (launch.grid[0] != uint64_t(shape.columnTiles) || launch.grid[1] != uint64_t(shape.rowTiles) ||
      launch.grid[2] != uint64_t(splits) || shape.rowTiles > 65535 ||
      launch.block[0] != shape.threads() || launch.block[1] != 1 || launch.block[2] != 1 ||
      launch.sharedBytes != shape.sharedBytes())
    return refuseLaunch("grid, block and shared memory have to be those of WeightGradientShape");
  WeightGradientLaunch checked{all,
                               results,
                               pixels,
                               sizes[3],
                               splits,
                               shape,
                               tileMapShape(all, results, results, kWeightGradientBox),
                               map};
  CGC_TRY(checkTensorMap(checked.grad, grad.alignment));
  return checked;
}

Result<SumPartsLaunch> checkSumParts(const LaunchView &launch) {
  const OperandView &parts = launch.reads[0], &y = launch.writes[0];
  const uint64_t elements = elementsOf(y);
  if (elements == 0 || elements % 4 != 0 || elements > INT32_MAX || parts.sizes.empty() ||
      parts.sizes[0] < 1 || parts.sizes[0] > 65535 ||
      !isDenseOf(parts, DType::F32, uint64_t(parts.sizes[0]) * elements) ||
      !isDenseOf(y, DType::F32, elements) || !isAligned(parts, 16) || !isAligned(y, 16))
    return refuseLaunch("parts have to be dense, f32[splits, elements], and y of as many elements, "
                        "a multiple of 4");
  if (!hasShape(launch, sumPartsBlocks(elements), kSumPartsThreads))
    return refuseLaunch(
        "the grid has to be sumPartsBlocks(), the block {256, 1, 1}, without shared "
        "memory");
  return SumPartsLaunch{int64_t(elements), parts.sizes[0]};
}

CGC_KERNEL_CHECK(conv_weight_gradient_f16_64, checkConvWeightGradient, DType::F16, 1)
CGC_KERNEL_CHECK(conv_weight_gradient_f16_128, checkConvWeightGradient, DType::F16, 2)
CGC_KERNEL_CHECK(conv_weight_gradient_bf16_64, checkConvWeightGradient, DType::BF16, 1)
CGC_KERNEL_CHECK(conv_weight_gradient_bf16_128, checkConvWeightGradient, DType::BF16, 2)
CGC_KERNEL_CHECK(sum_parts_f32, checkSumParts)

} // namespace cgc
