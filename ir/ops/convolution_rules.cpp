// convolution_rules: the type rules of convolutions.
#include "ir/ops/convolution_rules.h"

#include "ir/ops/window_rules.h"

namespace cgc::ir::rules {
namespace {

/// Returns "KH, KW]" for two spatial dimensions.
std::string kernelSizes(unsigned spatial) {
  return spatial == 1 ? "K]" : spatial == 2 ? "KH, KW]" : "KD, KH, KW]";
}

Status checkInput(const TensorType &input, unsigned spatial) {
  if (input.rank() != spatial + 1 && input.rank() != spatial + 2)
    return mismatch("input", imageSizes(spatial), input);
  if (!isFloating(input.dtype))
    return mismatch("input", "of a floating dtype", input);
  return Status::ok();
}

/// Adds a result of `sizes`, after checking 'bias'.
Status addResult(const InferArgs &args, Results &results, const Dims &sizes, unsigned spatial) {
  const int64_t outputs = sizes[sizes.size() - spatial - 1];
  if (!args.isNone("bias") && args.tensor("bias").sizes != Dims{outputs})
    return mismatch("bias", "[" + llvm::Twine(outputs) + "]", args.tensor("bias"));
  CGC_TRY(sameDType(args, "input", {"bias"}));
  return addDense(results, args.tensor("input").dtype, sizes);
}

} // namespace

Result<Dims> convolutionSizes(const InferArgs &args, unsigned spatial) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight");
  CGC_TRY(checkInput(input, spatial));
  if (weight.rank() != spatial + 2)
    return mismatch("weight", "[O, C / groups, " + kernelSizes(spatial), weight);
  CGC_TRY(sameDType(args, "input", {"weight"}));
  CGC_ASSIGN_OR_RETURN(Dims stride, extents(args, "stride", spatial, 1));
  CGC_ASSIGN_OR_RETURN(Dims padding, extents(args, "padding", spatial, 0));
  CGC_ASSIGN_OR_RETURN(Dims dilation, extents(args, "dilation", spatial, 1));
  int64_t groups = args.integer("groups"), outputs = weight.sizes[0];
  llvm::ArrayRef<int64_t> image = llvm::ArrayRef(input.sizes).take_back(spatial + 1);
  if (groups < 1 || outputs % groups != 0)
    return mismatch("groups", "a divisor of " + llvm::Twine(outputs) + " output channels", groups);
  if (image[0] % groups != 0 || weight.sizes[1] != image[0] / groups)
    return mismatch("weight",
                    "[O, " + llvm::Twine(image[0]) + " / " + llvm::Twine(groups) + ", " +
                        kernelSizes(spatial) + ", as the channels of 'input'",
                    weight);
  if (image[0] < 1 || weight.numElements() == 0)
    return mismatch("weight", "nonempty", weight);
  Dims sizes(llvm::ArrayRef(input.sizes).drop_back(spatial + 1));
  sizes.push_back(outputs);
  for (unsigned i = 0; i < spatial; ++i) {
    CGC_ASSIGN_OR_RETURN(int64_t count, windowCount("input", image[1 + i], weight.sizes[2 + i],
                                                    stride[i], padding[i], dilation[i], false));
    sizes.push_back(count);
  }
  return sizes;
}

Result<Dims> transposedConvolutionSizes(const InferArgs &args, unsigned spatial) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight");
  CGC_TRY(checkInput(input, spatial));
  llvm::ArrayRef<int64_t> image = llvm::ArrayRef(input.sizes).take_back(spatial + 1);
  if (weight.rank() != spatial + 2 || weight.sizes[0] != image[0] || weight.numElements() == 0)
    return mismatch("weight", "[" + llvm::Twine(image[0]) + ", O / groups, " + kernelSizes(spatial),
                    weight);
  CGC_TRY(sameDType(args, "input", {"weight"}));
  CGC_ASSIGN_OR_RETURN(Dims stride, extents(args, "stride", spatial, 1));
  CGC_ASSIGN_OR_RETURN(Dims padding, extents(args, "padding", spatial, 0));
  CGC_ASSIGN_OR_RETURN(Dims extra, extents(args, "output_padding", spatial, 0));
  CGC_ASSIGN_OR_RETURN(Dims dilation, extents(args, "dilation", spatial, 1));
  const int64_t groups = args.integer("groups");
  if (groups < 1 || image[0] % groups != 0)
    return mismatch("groups", "a divisor of " + llvm::Twine(image[0]) + " channels", groups);
  const int64_t outputs = weight.sizes[1] * groups;
  Dims sizes(llvm::ArrayRef(input.sizes).drop_back(spatial + 1));
  sizes.push_back(outputs);
  for (unsigned i = 0; i < spatial; ++i) {
    if (extra[i] >= std::max(stride[i], dilation[i]))
      return refuse("expected 'output_padding' to be less than the stride or the dilation, got " +
                    toString(args.ints("output_padding")));
    constexpr int64_t kMost = 1 << 30; // No product below overflows.
    const int64_t size = image[1 + i], kernel = weight.sizes[2 + i];
    if (size < 1 || std::max(size, kernel) > kMost)
      return mismatch("input", "nonempty and of less than 2^30 pixels in each dimension", input);
    sizes.push_back((size - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel - 1) +
                    extra[i] + 1);
    if (sizes.back() < 1)
      return mismatch("input", "large enough for its padding", input);
  }
  return sizes;
}

Result<Dims> imageConvolutionSizes(const InferArgs &args, const Dims &images, const Dims &weight) {
  CGC_ASSIGN_OR_RETURN(const Dims stride, extents(args, "stride", 2, 1));
  CGC_ASSIGN_OR_RETURN(const Dims padding, extents(args, "padding", 2, 0));
  CGC_ASSIGN_OR_RETURN(const Dims dilation, extents(args, "dilation", 2, 1));
  const int64_t groups = args.integer("groups"), channels = images[3];
  if (groups < 1 || channels < 1 || channels % groups != 0)
    return mismatch("groups", "a divisor of " + llvm::Twine(channels) + " channels", groups);
  if (weight.size() != 4 || llvm::is_contained(weight, 0) || weight[3] != channels / groups ||
      weight[0] % groups != 0)
    return refuse("expected the weight to be [O, KH, KW, " + llvm::Twine(channels / groups) +
                  "], with a multiple of " + llvm::Twine(groups) + " for O, got " +
                  toString(weight));
  Dims sizes = {images[0]};
  for (unsigned i = 0; i < 2; ++i) {
    CGC_ASSIGN_OR_RETURN(const int64_t count,
                         windowCount("input", images[1 + i], weight[1 + i], stride[i], padding[i],
                                     dilation[i], false));
    sizes.push_back(count);
  }
  sizes.push_back(weight[0]);
  return sizes;
}

Status convolution(const InferArgs &args, Results &results, unsigned spatial) {
  CGC_ASSIGN_OR_RETURN(const Dims sizes, convolutionSizes(args, spatial));
  return addResult(args, results, sizes, spatial);
}

Status transposedConvolution(const InferArgs &args, Results &results, unsigned spatial) {
  CGC_ASSIGN_OR_RETURN(const Dims sizes, transposedConvolutionSizes(args, spatial));
  return addResult(args, results, sizes, spatial);
}

} // namespace cgc::ir::rules
