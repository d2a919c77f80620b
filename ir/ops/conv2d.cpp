// aten.conv2d: two-dimensional convolution.
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight");
  if (input.rank() != 3 && input.rank() != 4)
    return rules::mismatch("input", "[N, C, H, W] or [C, H, W]", input);
  if (weight.rank() != 4)
    return rules::mismatch("weight", "[O, C / groups, KH, KW]", weight);
  if (!isFloating(input.dtype))
    return rules::mismatch("input", "of a floating dtype", input);
  CGC_TRY(rules::sameDType(args, "input", {"weight", "bias"}));
  CGC_ASSIGN_OR_RETURN(auto stride, rules::heightAndWidth(args, "stride", 1));
  CGC_ASSIGN_OR_RETURN(auto padding, rules::heightAndWidth(args, "padding", 0));
  CGC_ASSIGN_OR_RETURN(auto dilation, rules::heightAndWidth(args, "dilation", 1));
  int64_t groups = args.integer("groups"), outputs = weight.sizes[0];
  llvm::ArrayRef<int64_t> image = llvm::ArrayRef(input.sizes).take_back(3);
  if (groups < 1 || outputs % groups != 0)
    return rules::mismatch("groups", "a divisor of " + llvm::Twine(outputs) + " output channels",
                           groups);
  if (image[0] % groups != 0 || weight.sizes[1] != image[0] / groups)
    return rules::mismatch("weight",
                           "[O, " + llvm::Twine(image[0]) + " / " + llvm::Twine(groups) +
                               ", KH, KW], as the channels of 'input'",
                           weight);
  if (image[0] < 1 || weight.numElements() == 0)
    return rules::mismatch("weight", "nonempty", weight);
  if (!args.isNone("bias") &&
      llvm::ArrayRef(args.tensor("bias").sizes) != llvm::ArrayRef({outputs}))
    return rules::mismatch("bias", "[" + llvm::Twine(outputs) + "]", args.tensor("bias"));
  CGC_ASSIGN_OR_RETURN(int64_t height,
                       rules::windowCount("input", image[1], weight.sizes[2], stride.first,
                                          padding.first, dilation.first, false));
  CGC_ASSIGN_OR_RETURN(int64_t width,
                       rules::windowCount("input", image[2], weight.sizes[3], stride.second,
                                          padding.second, dilation.second, false));
  Dims sizes(llvm::ArrayRef(input.sizes).drop_back(3));
  sizes.append({outputs, height, width});
  return rules::addDense(results, input.dtype, sizes);
}

} // namespace

const OpDef defs::Conv2d = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=none, int[] stride=[1,1], int[] "
              "padding=[0,0], int[] dilation=[1,1], int groups=1) -> Tensor",
    .traits = kPure | kGemm,
    .infer = infer,
    .aten = "copy aten::conv2d",
    .doc = "input [N, C, H, W] (or without N), weight [O, C / groups, KH, KW], bias [O]: [N, O, "
           "OH, OW]. stride, padding and dilation have one or two elements.",
};

} // namespace cgc::ir
