// cgc.conv2d_input_gradient and cgc.conv2d_weight_gradient. The gradient of images is a convolution
// of that of the result, by one kernel on cuda for windows that the GEMM kernels take. Else
// LibTorch computes the gradients; it reads and writes images with dense channels as they lie.
#include "backend/kernels.h"
#include "backend/lower_gemm.h"
#include "backend/ops/converted.h"
#include "backend/ops/lower_windows.h"
#include "ir/op_views.h"
#include "runtime/kernels/gemm/conv_weight_gradient.h"

namespace cgc::backend {
namespace {

/// The windows of the convolution whose gradient `op` is, of a kernel and a result of these sizes.
template <class Op>
ConvWindows windowsOf(const Op &op, const ir::Dims &kernel, const ir::Dims &result) {
  return convWindows(kernel, op.stride(), op.padding(), op.dilation(), result);
}

/// `place` with its dimensions in this order.
Place permuted(const Place &place, std::array<size_t, 4> order) {
  Place result = place;
  for (size_t i = 0; i < order.size(); ++i) {
    result.sizes[i] = place.sizes[order[i]];
    result.strides[i] = place.strides[order[i]];
  }
  return result;
}

Place channelsSecond(const Place &place) {
  return permuted(place, {0, 3, 1, 2});
}

/// An image of which only the sizes count.
Place anyImage(DType dtype, const ir::Dims &sizes, BucketBuilder &builder) {
  Place place = scalarTensor(0, dtype, builder);
  place.sizes = sizes;
  place.strides.assign(sizes.size(), 0);
  return place;
}

/// A weight of which only the sizes count, and the layout: LibTorch chooses that of its result by
/// it.
Place anyWeight(DType dtype, const ir::Dims &sizes, BucketBuilder &builder) {
  const Place place = builder.temporary(dtype, sizes);
  builder.fill(place, 0);
  return place;
}

/// Adds the call of LibTorch for the gradient of images or of a weight: of the one that is given.
void callConvolutionBackward(const Place &grad, const Place &input, const Place &weight,
                             const ConvWindows &windows, int64_t groups,
                             const std::optional<Place> &gradOfInput,
                             const std::optional<Place> &gradOfWeight, BucketBuilder &builder) {
  const auto tensor = [&](const Place &place) { return builder.tensor(channelsSecond(place)); };
  const auto pair = [](const std::array<int64_t, 2> &of) {
    return AtenArg(std::vector<int64_t>(of.begin(), of.end()));
  };
  const auto output = [](const std::optional<Place> &place) {
    return place ? std::optional(channelsSecond(*place)) : std::nullopt;
  };
  builder.callThenCopy("aten::convolution_backward", "",
                       {tensor(grad), tensor(input), tensor(weight), NoneArg{},
                        pair(windows.stride), pair(windows.padding), pair(windows.dilation),
                        /*transposed=*/false, std::vector<int64_t>{0, 0}, groups,
                        std::vector<int64_t>{gradOfInput.has_value(), gradOfWeight.has_value(), 0}},
                       {output(gradOfInput), output(gradOfWeight), std::nullopt});
}

/// `grad` with zeros between its pixels, so that they are `stride` apart.
Place spread(const Place &grad, const std::array<int64_t, 2> &stride, BucketBuilder &builder) {
  if (stride == std::array<int64_t, 2>{1, 1})
    return grad;
  ir::Dims sizes = grad.sizes;
  for (size_t i : {0, 1})
    sizes[1 + i] = (sizes[1 + i] - 1) * stride[i] + 1;
  const Place result = builder.temporary(grad.dtype, sizes);
  builder.fill(result, 0);
  Place pixels = result;
  pixels.sizes = grad.sizes;
  for (size_t i : {0, 1})
    pixels.strides[1 + i] *= stride[i];
  builder.copy(grad, pixels);
  return result;
}

/// The windows of the gradient's pixels that a pixel of the image is in: the kernel's pixels in
/// reverse order.
ConvWindows reversed(ConvWindows windows, const ir::Dims &image) {
  for (size_t i : {0, 1}) {
    windows.stride[i] = 1;
    windows.padding[i] *= -1;
    windows.dilation[i] *= -1;
    windows.result[i] = image[1 + i];
  }
  return windows;
}

/// Launches the kernel for the gradient `result` of a weight, in f32. Returns false and adds
/// nothing if it does not take the images.
bool launchWeightGradient(const Place &grad, const Place &input, const ConvWindows &windows,
                          const Place &result, BucketBuilder &builder) {
  Place rows = grad; // [windows, results]
  rows.sizes = {grad.type().numElements() / grad.sizes[3], grad.sizes[3]};
  rows.strides = ir::contiguousStrides(rows.sizes);
  const auto shape = WeightGradientShape::of(rows.sizes[0], rows.sizes[1],
                                             result.sizes[1] * result.sizes[2], input.sizes[3]);
  const int64_t splits = shape.splits(builder.multiprocessors());
  Place parts = result;
  if (splits > 1) {
    ir::Dims sizes = {splits};
    sizes.append(result.sizes.begin(), result.sizes.end());
    parts = builder.temporary(DType::F32, sizes);
  }
  std::vector<int64_t> ints = {splits};
  std::ranges::copy(windows.ints(), std::back_inserter(ints));
  if (!grad.type().isContiguous() || dtypeSize(input.dtype) != 2 ||
      !launch({.kernel = kernelNamed("conv_weight_gradient", input.dtype) +
                         (shape.warpgroups == 1 ? "_64" : "_128"),
               .blocks = uint64_t(shape.columnTiles),
               .threads = shape.threads(),
               .reads = {rows, input},
               .writes = {parts},
               .ints = std::move(ints),
               .blocksY = uint32_t(shape.rowTiles),
               .blocksZ = uint32_t(splits),
               .sharedBytes = shape.sharedBytes()},
              builder))
    return false;
  const bool isSummed =
      splits == 1 || launch({.kernel = "sum_parts_f32",
                             .blocks = sumPartsBlocks(uint64_t(result.type().numElements())),
                             .threads = kSumPartsThreads,
                             .reads = {parts},
                             .writes = {result}},
                            builder);
  CGC_CHECK(isSummed && "the kernel takes the parts of a weight");
  return true;
}

} // namespace

Result<bool> launchConv2dInputGradient(const ir::Node &node, BucketBuilder &builder) {
  const auto op = *ir::CgcConv2dInputGradientOp::of(node);
  const Place grad = densePlace(builder.place(op.gradOut()), builder),
              weight = builder.place(op.weight()), result = builder.allocate(*op.result());
  const ConvWindows windows = windowsOf(op, {weight.sizes[1], weight.sizes[2]}, grad.sizes);
  const auto launchConvolution = [&] {
    const auto mark = builder.mark();
    GemmPlaces operands;
    operands.x = spread(grad, windows.stride, builder);
    operands.w = densePlace(permuted(weight, {3, 1, 2, 0}), builder);
    operands.y = result;
    const bool isLaunched =
        lowerGemm(operands, {.windows = reversed(windows, result.sizes)}, builder).has_value();
    if (!isLaunched)
      builder.undo(mark);
    return isLaunched;
  };
  if (op.groups() == 1 && launchConvolution())
    return true;
  callConvolutionBackward(grad, anyImage(grad.dtype, result.sizes, builder), weight, windows,
                          op.groups(), result, std::nullopt, builder);
  return true;
}

Result<bool> launchConv2dWeightGradient(const ir::Node &node, BucketBuilder &builder) {
  const auto op = *ir::CgcConv2dWeightGradientOp::of(node);
  if (builder.target() == DeviceKind::Cpu)
    return false; // The definition does not round to 16 bits first.
  const Place grad = builder.place(op.gradOut()), input = builder.place(op.input());
  const ConvWindows windows = windowsOf(op, op.kernelSize(), grad.sizes);
  if (op.groups() == 1 && op.dtype() == DType::F32 &&
      launchWeightGradient(grad, input, windows, builder.allocate(*op.result()), builder))
    return true;
  ConvertedResults results(builder);
  const Place result = results.add(*op.result(), input.dtype);
  callConvolutionBackward(grad, input, anyWeight(input.dtype, result.sizes, builder), windows,
                          op.groups(), std::nullopt, result, builder);
  results.convert();
  return true;
}

} // namespace cgc::backend
