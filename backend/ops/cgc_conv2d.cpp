// cgc.conv2d: one kernel on cuda, for windows that the GEMM kernels take and for channels by
// themselves; otherwise LibTorch, then the residual and the activation in place.
#include "backend/kernels.h"
#include "backend/lower_gemm.h"
#include "backend/ops/lower_activation.h"
#include "ir/op_views.h"
#include "runtime/kernels/images/images.h"

namespace cgc::backend {
namespace {

bool launchDepthwise(const GemmPlaces &operands, Activation activation, const ConvWindows &windows,
                     BucketBuilder &builder) {
  const auto grid = depthwiseGrid(operands.x.sizes[0], windows, operands.x.sizes[3]);
  std::vector<int64_t> ints = {int64_t(activation)};
  std::ranges::copy(windows.ints(), std::back_inserter(ints));
  return launch({.kernel = kernelNamed("depthwise_conv", operands.x.dtype),
                 .blocks = grid[0],
                 .threads = kImageThreads,
                 .reads = {operands.x, operands.w, operands.bias, operands.residual},
                 .writes = {operands.y},
                 .ints = ints,
                 .blocksY = grid[1]},
                builder);
}

} // namespace

Result<bool> launchConv2d(const ir::Node &node, BucketBuilder &builder) {
  const auto conv = *ir::CgcConv2dOp::of(node);
  const GemmPlaces operands{.x = builder.place(conv.input()),
                            .w = builder.place(conv.weight()),
                            .bias = builder.optionalPlace(node.arg("bias")),
                            .residual = builder.optionalPlace(node.arg("residual")),
                            .y = builder.allocate(*conv.result())};
  const auto pair = [](const ir::Dims &of) { return std::array{of.front(), of.back()}; };
  const ir::Dims &kernel = operands.w.sizes, &result = operands.y.sizes;
  const ConvWindows windows{.kernel = {kernel[1], kernel[2]},
                            .stride = pair(conv.stride()),
                            .padding = pair(conv.padding()),
                            .dilation = pair(conv.dilation()),
                            .result = {result[1], result[2]}};
  const Activation activation = activationNamed(conv.activation().str());
  const int64_t groups = conv.groups();
  if (groups == 1 && lowerGemm(operands, {.activation = activation, .windows = windows}, builder))
    return true;
  if (groups == kernel[0] && kernel[3] == 1 &&
      launchDepthwise(operands, activation, windows, builder))
    return true;
  callConvolution(operands, windows, groups, builder);
  if (operands.residual)
    addInto(*operands.residual, operands.y, operands.y, builder);
  if (activation != Activation::None)
    activate(activation, operands.y, operands.y, builder);
  return true;
}

} // namespace cgc::backend
