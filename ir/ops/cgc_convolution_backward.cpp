// cgc.convolution_backward: the gradients of a convolution.
#include "ir/op_builder.h"
#include "ir/ops/convolution_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcConvolutionBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight"),
                   &grad = args.tensor("grad_output");
  CGC_TRY(rules::sameDType(args, "input", {"weight", "grad_output"}));
  if (input.rank() < 3 || input.rank() > 5 || !isFloating(input.dtype))
    return rules::mismatch("input", "[N, C, ...] of a floating dtype, with one to three dimensions",
                           input);
  for (llvm::StringRef name : {"weight", "grad_output"})
    if (args.tensor(name).rank() != input.rank())
      return rules::mismatch(name, "of the rank of 'input'", args.tensor(name));
  const auto spatial = static_cast<unsigned>(input.rank() - 2);
  CGC_ASSIGN_OR_RETURN(const Dims sizes, args.boolean("transposed")
                                             ? rules::transposedConvolutionSizes(args, spatial)
                                             : rules::convolutionSizes(args, spatial));
  if (grad.sizes != sizes)
    return rules::mismatch("grad_output",
                           rules::toString(sizes) + ", as the result of the convolution", grad);
  const Dims mask = args.ints("output_mask");
  if (mask.size() != 3)
    return rules::refuse("expected 'output_mask' to have three elements");
  if (mask[0])
    CGC_TRY(rules::addDense(results, input.dtype, input.sizes));
  if (mask[1])
    CGC_TRY(rules::addDense(results, weight.dtype, weight.sizes));
  if (mask[2])
    CGC_TRY(rules::addDense(results, weight.dtype, {grad.sizes[1]}));
  return Status::ok();
}

/// How windows lie on an image of two or three dimensions.
struct Windows {
  Dims stride, padding, dilation;
  int64_t groups;
};

/// `a` without the last elements of dimensions that are larger than those of `sizes`.
Value *leadingPart(OpBuilder &b, Value *a, llvm::ArrayRef<int64_t> sizes) {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (a->tensor().sizes[d] > sizes[d])
      a = b.call(OpKind::Slice, {a, static_cast<int64_t>(d), 0, sizes[d]});
  return a;
}

/// The convolution of an image, of which `sizes` are kept: [N, O, ...].
Value *convolve(OpBuilder &b, Value *image, Value *weight, const Windows &windows,
                llvm::ArrayRef<int64_t> sizes) {
  Value *result = b.call(windows.stride.size() == 3 ? OpKind::Conv3d : OpKind::Conv2d,
                         {image, weight, Arg(), Arg::ints(windows.stride),
                          Arg::ints(windows.padding), Arg::ints(windows.dilation), windows.groups});
  return leadingPart(b, result, sizes);
}

/// The adjoint of a convolution whose image has these sizes.
Value *convolveTransposed(OpBuilder &b, Value *values, Value *weight, const Windows &windows,
                          llvm::ArrayRef<int64_t> sizes) {
  Dims behind; // The elements of the padded image behind the last window.
  for (size_t i = 0; i < windows.stride.size(); ++i)
    behind.push_back(sizes[2 + i] + 2 * windows.padding[i] - 1 -
                     windows.stride[i] * (values->tensor().sizes[2 + i] - 1) -
                     windows.dilation[i] * (weight->tensor().sizes[2 + i] - 1));
  return b.call(windows.stride.size() == 3 ? OpKind::ConvTranspose3d : OpKind::ConvTranspose2d,
                {values, weight, Arg(), Arg::ints(windows.stride), Arg::ints(windows.padding),
                 Arg::ints(behind), windows.groups, Arg::ints(windows.dilation)});
}

/// The gradient of a weight of these sizes, by which a convolution takes `image` to `values` or its
/// adjoint takes `values` to `image`. Element (o, c, k) is the sum over n and i of values(n, o, i)
/// image(n, c, stride * i + dilation * k - padding): a convolution with the batch as channels and
/// with stride and dilation swapped.
Value *weightGradient(OpBuilder &b, Value *image, Value *values, const Windows &windows,
                      llvm::ArrayRef<int64_t> sizes) {
  const Dims imageSizes = image->tensor().sizes;
  const int64_t batch = imageSizes[0], groups = windows.groups, channels = imageSizes[1] / groups;
  Dims split = {batch, groups, channels}, order = {2, 1, 0}, merged = {channels, groups * batch};
  for (size_t d = 2; d < imageSizes.size(); ++d) {
    split.push_back(imageSizes[d]);
    order.push_back(static_cast<int64_t>(d) + 1);
    merged.push_back(imageSizes[d]);
  }
  image = b.reshape(b.permute(b.reshape(image, split), order), merged);
  const auto swapped = [&](Value *a) { return b.call(OpKind::Transpose, {a, 0, 1}); };
  Dims swappedSizes(sizes);
  std::swap(swappedSizes[0], swappedSizes[1]);
  return swapped(convolve(b, image, swapped(values),
                          {windows.dilation, windows.padding, windows.stride, groups},
                          swappedSizes));
}

/// In f32 for 16 bits. An image of one dimension gets a second one of one element.
Result<Values> defineCgcConvolutionBackward(OpBuilder &b) {
  const InferArgs args = b.args();
  const auto spatial = static_cast<unsigned>(args.tensor("input").rank() - 2);
  const auto tensor = [&](llvm::StringRef name) {
    Value *value = b.widened(b.input(name));
    return spatial == 1 ? b.call(OpKind::Unsqueeze, {value, 2}) : value;
  };
  const auto extents = [&](llvm::StringRef name, int64_t ofOneElement) {
    Dims values = args.ints(name);
    values.resize(spatial, values.front());
    if (spatial == 1)
      values.insert(values.begin(), ofOneElement);
    return values;
  };
  const Windows windows{extents("stride", 1), extents("padding", 0), extents("dilation", 1),
                        args.integer("groups")};
  Value *grad = tensor("grad_output"), *input = tensor("input"), *weight = tensor("weight");
  const bool isTransposed = args.boolean("transposed");
  Value *image = isTransposed ? grad : input, *values = isTransposed ? input : grad;
  const bool isEmpty = image->tensor().numElements() == 0; // No convolution takes it.
  const Dims mask = args.ints("output_mask");
  Values results;
  const auto add = [&](Value *result) {
    const TensorType &type = b.result(static_cast<unsigned>(results.size()))->tensor();
    results.push_back(b.to(b.reshape(result, type.sizes), type.dtype));
  };
  const Dims inputSizes = input->tensor().sizes, weightSizes = weight->tensor().sizes;
  if (mask[0])
    add(isEmpty        ? b.zerosLike(input)
        : isTransposed ? convolve(b, grad, weight, windows, inputSizes)
                       : convolveTransposed(b, grad, weight, windows, inputSizes));
  if (mask[1])
    add(isEmpty ? b.zerosLike(weight) : weightGradient(b, image, values, windows, weightSizes));
  if (mask[2])
    add(b.sum(grad, rules::channelsOf(grad->tensor()).others, /*keepDim=*/false));
  return results;
}

} // namespace

const OpDef defs::CgcConvolutionBackward = {
    .schema = "(Tensor grad_output, Tensor input, Tensor weight, int[] stride, int[] padding, "
              "int[] dilation, bool transposed, int[] output_padding, int groups, bool[] "
              "output_mask) -> Tensor[]",
    .traits = kPure | kGemm,
    .infer = inferCgcConvolutionBackward,
    .decompose = defineCgcConvolutionBackward,
    .doc = "The gradients of input, weight and bias [O], of those that output_mask asks for. input "
           "has a batch dimension.",
};

} // namespace cgc::ir
