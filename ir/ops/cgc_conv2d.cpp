// cgc.conv2d: convolution of images with dense channels, with a residual and an activation.
#include "ir/ops/linear_rules.h"
#include "ir/ops/row_statistics_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcConv2d(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight");
  if (input.rank() != 4 || !isFloating(input.dtype))
    return rules::mismatch("input", "[N, H, W, C] of a floating dtype", input);
  CGC_TRY(rules::sameDType(args, "input", {"weight", "bias", "residual"}));
  const int64_t groups = args.integer("groups"), channels = input.sizes[3];
  if (groups < 1 || channels < 1 || channels % groups != 0)
    return rules::mismatch("groups", "a divisor of " + llvm::Twine(channels) + " channels", groups);
  if (weight.rank() != 4 || weight.numElements() == 0 || weight.sizes[3] != channels / groups ||
      weight.sizes[0] % groups != 0)
    return rules::mismatch("weight",
                           "[O, KH, KW, " + llvm::Twine(channels / groups) +
                               "], with a multiple of " + llvm::Twine(groups) + " for O",
                           weight);
  CGC_TRY(rules::checkActivation(args));
  CGC_ASSIGN_OR_RETURN(const Dims stride, rules::extents(args, "stride", 2, 1));
  CGC_ASSIGN_OR_RETURN(const Dims padding, rules::extents(args, "padding", 2, 0));
  CGC_ASSIGN_OR_RETURN(const Dims dilation, rules::extents(args, "dilation", 2, 1));
  Dims sizes = {input.sizes[0]};
  for (unsigned i = 0; i < 2; ++i) {
    CGC_ASSIGN_OR_RETURN(const int64_t count,
                         rules::windowCount("input", input.sizes[1 + i], weight.sizes[1 + i],
                                            stride[i], padding[i], dilation[i], false));
    sizes.push_back(count);
  }
  sizes.push_back(weight.sizes[0]);
  if (!args.isNone("bias") && args.tensor("bias").sizes != Dims{weight.sizes[0]})
    return rules::mismatch("bias", "[" + llvm::Twine(weight.sizes[0]) + "]", args.tensor("bias"));
  if (!args.isNone("residual") && args.tensor("residual").sizes != sizes)
    return rules::mismatch("residual", rules::toString(sizes), args.tensor("residual"));
  CGC_TRY(rules::addDense(results, input.dtype, sizes));
  return rules::addRowStatistics(args, results);
}

Result<Values> defineCgcConv2d(OpBuilder &b) {
  const auto imagesFirst = [&](llvm::StringRef name) {
    return b.permute(b.input(name), {0, 3, 1, 2});
  };
  Value *y = b.call(OpKind::Conv2d,
                    {imagesFirst("input"), imagesFirst("weight"), b.arg("bias"), b.arg("stride"),
                     b.arg("padding"), b.arg("dilation"), b.arg("groups")});
  y = b.permute(y, {0, 2, 3, 1});
  if (!b.arg("residual").isNone())
    y = b.add(y, b.arg("residual"));
  y = rules::activated(b, y, b.args().str("activation"));
  Values values{y->tensor().isContiguous() ? y : b.call(OpKind::Contiguous, {y})};
  rules::defineRowStatistics(b, values);
  return values;
}

} // namespace

const OpDef defs::CgcConv2d = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=none, Tensor? residual=none, str "
              "activation=\"none\", int[] stride=[1,1], int[] padding=[0,0], int[] "
              "dilation=[1,1], int groups=1, bool row_statistics=false) -> (Tensor, Tensor?)",
    .traits = kPure | kGemm,
    .infer = inferCgcConv2d,
    .decompose = defineCgcConv2d,
    .doc = "activation(convolution of input [N, H, W, C] with weight [O, KH, KW, C / groups], plus "
           "bias [O], plus residual [N, OH, OW, O]): [N, OH, OW, O]. Stride, padding and dilation "
           "as in aten.conv2d, the activation and the row statistics as in cgc.linear.",
};

} // namespace cgc::ir
