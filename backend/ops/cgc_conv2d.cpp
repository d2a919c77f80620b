// cgc.conv2d: one kernel on cuda, for windows that the GEMM kernels take, for images with few
// channels and for channels by themselves; otherwise LibTorch, then the residual and the activation
// in place.
#include "backend/kernels.h"
#include "backend/lower_gemm.h"
#include "backend/ops/lower_activation.h"
#include "backend/ops/lower_windows.h"
#include "backend/row_statistics.h"
#include "ir/op_views.h"
#include "runtime/kernels/images/images.h"

namespace cgc::backend {
namespace {

std::vector<int64_t> numbersOf(Activation activation, const ConvWindows &windows) {
  std::vector<int64_t> ints = {int64_t(activation)};
  std::ranges::copy(windows.ints(), std::back_inserter(ints));
  return ints;
}

bool launchStem(const GemmPlaces &operands, Activation activation, const ConvWindows &windows,
                BucketBuilder &builder) {
  if (operands.residual)
    return false;
  const StemShape shape = StemShape::of(windows, operands.x.sizes[3]);
  const auto grid = shape.grid(operands.x.sizes[0], operands.w.sizes[0]);
  return launch({.kernel = kernelNamed("stem_conv", operands.x.dtype),
                 .blocks = uint64_t(grid[0]),
                 .threads = kImageThreads,
                 .reads = {operands.x, operands.w, operands.bias},
                 .writes = {operands.y},
                 .ints = numbersOf(activation, windows),
                 .blocksY = uint32_t(grid[1]),
                 .sharedBytes = uint32_t(shape.sharedBytes())},
                builder);
}

bool launchDepthwise(const GemmPlaces &operands, Activation activation, const ConvWindows &windows,
                     BucketBuilder &builder) {
  Place w = operands.w; // [results, kernel height, kernel width, 1]
  for (auto *dims : {&w.sizes, &w.strides})
    *dims = {(*dims)[1], (*dims)[2], (*dims)[0]};
  const auto launchWith = [&](const Place &weight) {
    const auto shape =
        DepthwiseShape::of(operands.x.sizes[0], windows, operands.x.sizes[3], weight.sizes[2]);
    return Launch{.kernel = kernelNamed("depthwise_conv", operands.x.dtype),
                  .blocks = uint64_t(shape.grid[0]),
                  .threads = shape.threads,
                  .reads = {operands.x, weight, operands.bias, operands.residual},
                  .writes = {operands.y},
                  .ints = numbersOf(activation, windows),
                  .blocksY = uint32_t(shape.grid[1]),
                  .sharedBytes = shape.sharedBytes,
                  .rowStatistics = operands.yStatistics};
  };
  const Place dense = builder.temporary(w.dtype, w.sizes);
  return takes(launchWith(dense), builder) && launch(launchWith(densePlace(w, builder)), builder);
}

} // namespace

Result<bool> launchConv2d(const ir::Node &node, BucketBuilder &builder) {
  const auto conv = *ir::CgcConv2dOp::of(node);
  const GemmPlaces operands{.x = builder.place(conv.input()),
                            .w = builder.place(conv.weight()),
                            .bias = builder.optionalPlace(node.arg("bias")),
                            .residual = builder.optionalPlace(node.arg("residual")),
                            .y = builder.allocate(*node.result()),
                            .yStatistics = wantedRowStatistics(node, builder)};
  const ir::Dims &weight = operands.w.sizes;
  const ConvWindows windows = convWindows({weight[1], weight[2]}, conv.stride(), conv.padding(),
                                          conv.dilation(), operands.y.sizes);
  const Activation activation = activationNamed(conv.activation().str());
  const int64_t groups = conv.groups();
  const auto placed = [&](bool hasStatistics) {
    return placeRowStatistics(node, hasStatistics ? operands.yStatistics : std::nullopt, builder);
  };
  if (groups == 1)
    if (const auto rest =
            lowerGemm(operands, {.activation = activation, .windows = windows}, builder))
      return placed(!rest->rowStatistics);
  if (groups == 1 && launchStem(operands, activation, windows, builder))
    return placed(false);
  if (groups == operands.x.sizes[3] && launchDepthwise(operands, activation, windows, builder))
    return placed(true);
  callConvolution(operands, windows, groups, builder);
  if (operands.residual)
    addInto(*operands.residual, operands.y, operands.y, builder);
  if (activation != Activation::None)
    activate(activation, operands.y, operands.y, builder);
  return placed(false);
}

} // namespace cgc::backend
