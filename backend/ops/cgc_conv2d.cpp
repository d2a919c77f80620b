// cgc.conv2d: one kernel on cuda, for windows that the GEMM kernels take and for channels by
// themselves; otherwise LibTorch, then the residual and the activation in place.
#include "backend/kernels.h"
#include "backend/lower_gemm.h"
#include "backend/ops/lower_activation.h"
#include "backend/ops/lower_windows.h"
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

Status lowerConv2d(const ir::Node &node, BucketBuilder &builder) {
  const auto conv = *ir::CgcConv2dOp::of(node);
  const GemmPlaces operands{.x = builder.place(conv.input()),
                            .w = builder.place(conv.weight()),
                            .bias = builder.optionalPlace(node.arg("bias")),
                            .residual = builder.optionalPlace(node.arg("residual")),
                            .y = builder.allocate(*conv.result())};
  const ir::Dims &weight = operands.w.sizes;
  const ConvWindows windows = convWindows({weight[1], weight[2]}, conv.stride(), conv.padding(),
                                          conv.dilation(), operands.y.sizes);
  const Activation activation = activationNamed(conv.activation().str());
  const int64_t groups = conv.groups();
  if (groups == 1 && lowerGemm(operands, {.activation = activation, .windows = windows}, builder))
    return Status::ok();
  if (groups == weight[0] && weight[3] == 1 &&
      launchDepthwise(operands, activation, windows, builder))
    return Status::ok();
  callConvolution(operands, windows, groups, builder);
  if (operands.residual)
    addInto(*operands.residual, operands.y, operands.y, builder);
  if (activation != Activation::None)
    activate(activation, operands.y, operands.y, builder);
  return Status::ok();
}

} // namespace cgc::backend
