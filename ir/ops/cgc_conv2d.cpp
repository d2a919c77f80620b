// cgc.conv2d: convolution of images with dense channels, with a residual and an activation.
#include "ir/ops/batch_rules.h"
#include "ir/ops/convolution_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/linear_rules.h"
#include "ir/ops/row_statistics_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcConv2d(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight");
  if (input.rank() != 4 || !isFloating(input.dtype))
    return rules::mismatch("input", "[N, H, W, C] of a floating dtype", input);
  CGC_TRY(rules::sameDType(args, "input", {"weight", "bias", "residual"}));
  CGC_TRY(rules::checkActivation(args));
  CGC_ASSIGN_OR_RETURN(const Dims sizes,
                       rules::imageConvolutionSizes(args, input.sizes, weight.sizes));
  if (!args.isNone("bias") && args.tensor("bias").sizes != Dims{weight.sizes[0]})
    return rules::mismatch("bias", "[" + llvm::Twine(weight.sizes[0]) + "]", args.tensor("bias"));
  if (!args.isNone("residual") && args.tensor("residual").sizes != sizes)
    return rules::mismatch("residual", rules::toString(sizes), args.tensor("residual"));
  CGC_TRY(rules::addDense(results, input.dtype, sizes));
  return rules::addRowStatistics(args, results);
}

Status backwardCgcConv2d(GradientBuilder &b) {
  if (b.input("residual") || b.arg("activation") != Arg("none") ||
      b.arg("row_statistics") != Arg(false))
    return rules::refuse("passes fuse residuals, activations and statistics after gradients are "
                         "taken");
  const Dims image = b.input("input")->tensor().sizes, weight = b.input("weight")->tensor().sizes;
  const auto sizes = [](const Dims &of) { return Arg::ints(Dims{of[1], of[2]}); };
  const auto pair = [&](llvm::StringRef name) {
    const Dims of = b.args().ints(name);
    return Arg::ints(Dims{of.front(), of.back()});
  };
  b.set("bias", b.grad());
  if (b.needs("input"))
    b.set("input", b.call(OpKind::CgcConv2dInputGradient,
                          {b.grad(), b.arg("weight"), sizes(image), pair("stride"), pair("padding"),
                           pair("dilation"), b.arg("groups")}));
  if (b.needs("weight"))
    b.set("weight",
          b.call(OpKind::CgcConv2dWeightGradient,
                 {b.grad(), b.arg("input"), sizes(weight), pair("stride"), pair("padding"),
                  pair("dilation"), b.arg("groups"), b.grad()->tensor().dtype}));
  return Status::ok();
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
    .gradient = backwardCgcConv2d,
    .decompose = defineCgcConv2d,
    .doc = "activation(convolution of input [N, H, W, C] with weight [O, KH, KW, C / groups], plus "
           "bias [O], plus residual [N, OH, OW, O]): [N, OH, OW, O]. Stride, padding and dilation "
           "as in aten.conv2d, the activation and the row statistics as in cgc.linear.",
};

} // namespace cgc::ir
