// aten.conv_transpose2d: two-dimensional transposed convolution.
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight");
  if ((input.rank() != 3 && input.rank() != 4) || !isFloating(input.dtype))
    return rules::mismatch("input", "[N, C, H, W] or [C, H, W] of a floating dtype", input);
  llvm::ArrayRef<int64_t> image = llvm::ArrayRef(input.sizes).take_back(3);
  if (weight.rank() != 4 || weight.sizes[0] != image[0] || weight.numElements() == 0)
    return rules::mismatch("weight", "[" + llvm::Twine(image[0]) + ", O / groups, KH, KW]", weight);
  CGC_TRY(rules::sameDType(args, "input", {"weight", "bias"}));
  CGC_ASSIGN_OR_RETURN(auto stride, rules::heightAndWidth(args, "stride", 1));
  CGC_ASSIGN_OR_RETURN(auto padding, rules::heightAndWidth(args, "padding", 0));
  CGC_ASSIGN_OR_RETURN(auto extra, rules::heightAndWidth(args, "output_padding", 0));
  CGC_ASSIGN_OR_RETURN(auto dilation, rules::heightAndWidth(args, "dilation", 1));
  const int64_t groups = args.integer("groups");
  if (groups < 1 || image[0] % groups != 0)
    return rules::mismatch("groups", "a divisor of " + llvm::Twine(image[0]) + " channels", groups);
  if (extra.first >= std::max(stride.first, dilation.first) ||
      extra.second >= std::max(stride.second, dilation.second))
    return rules::refuse(
        "expected 'output_padding' to be less than the stride or the dilation, got " +
        rules::toString(args.ints("output_padding")));
  const int64_t outputs = weight.sizes[1] * groups;
  if (!args.isNone("bias") && args.tensor("bias").sizes != Dims{outputs})
    return rules::mismatch("bias", "[" + llvm::Twine(outputs) + "]", args.tensor("bias"));
  auto extent = [](int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                   int64_t extra) {
    return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1;
  };
  constexpr int64_t kMost = 1 << 30; // No product above overflows.
  const int64_t height = extent(image[1], weight.sizes[2], stride.first, padding.first,
                                dilation.first, extra.first),
                width = extent(image[2], weight.sizes[3], stride.second, padding.second,
                               dilation.second, extra.second);
  if (std::max({image[1], image[2], weight.sizes[2], weight.sizes[3]}) > kMost || height < 1 ||
      width < 1 || image[1] < 1 || image[2] < 1)
    return rules::mismatch("input", "large enough for its padding", input);
  Dims sizes(llvm::ArrayRef(input.sizes).drop_back(3));
  sizes.append({outputs, height, width});
  return rules::addDense(results, input.dtype, sizes);
}

} // namespace

const OpDef defs::ConvTranspose2d = {
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=none, int[] stride=[1,1], int[] padding=[0,0], "
        "int[] output_padding=[0,0], int groups=1, int[] dilation=[1,1]) -> Tensor",
    .traits = kPure | kGemm,
    .infer = infer,
    .aten = "copy aten::conv_transpose2d.input",
    .doc = "The adjoint of conv2d: input [N, C, H, W] (or without N), weight [C, O / groups, KH, "
           "KW], bias "
           "[O]: [N, O, (H - 1) * stride - 2 * padding + dilation * (KH - 1) + output_padding + 1, "
           "...].",
};

} // namespace cgc::ir
