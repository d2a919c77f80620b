// cgc.conv2d_input_gradient: the gradient of the images of cgc.conv2d.
#include "ir/op_builder.h"
#include "ir/ops/convolution_rules.h"

namespace cgc::ir {
namespace {

/// The sizes [N, H, W, C] of the images.
Result<Dims> imageSizes(const InferArgs &args) {
  const Dims &grad = args.tensor("grad_out").sizes, &weight = args.tensor("weight").sizes;
  const Dims size = args.ints("size");
  if (size.size() != 2 || llvm::any_of(size, [](int64_t extent) { return extent < 0; }))
    return rules::refuse("expected 'size' to be [H, W], got " + rules::toString(size));
  if (grad.size() != 4 || weight.size() != 4)
    return rules::refuse("expected 'grad_out' and 'weight' to have four dimensions");
  const int64_t groups = std::max(args.integer("groups"), int64_t{1});
  return Dims{grad[0], size[0], size[1], weight[3] * groups};
}

Status inferCgcConv2dInputGradient(const InferArgs &args, rules::Results &results) {
  const TensorType &grad = args.tensor("grad_out"), &weight = args.tensor("weight");
  if (!isFloating(grad.dtype))
    return rules::mismatch("grad_out", "[N, OH, OW, O] of a floating dtype", grad);
  CGC_TRY(rules::sameDType(args, "grad_out", {"weight"}));
  CGC_ASSIGN_OR_RETURN(const Dims images, imageSizes(args));
  CGC_ASSIGN_OR_RETURN(const Dims sizes, rules::imageConvolutionSizes(args, images, weight.sizes));
  if (grad.sizes != sizes)
    return rules::mismatch("grad_out",
                           rules::toString(sizes) + ", as the result of the convolution", grad);
  return rules::addDense(results, grad.dtype, images);
}

Result<Values> defineCgcConv2dInputGradient(OpBuilder &b) {
  CGC_ASSIGN_OR_RETURN(const Dims images, imageSizes(b.args()));
  const auto channelsSecond = [&](Value *value) { return b.permute(value, {0, 3, 1, 2}); };
  Value *grad = b.input("grad_out");
  Value *zero = b.call(OpKind::Full, {Arg::ints(Dims()), 0.0, grad->tensor().dtype});
  Value *input = channelsSecond(b.expand(zero, images)); // Only its sizes count.
  grad = channelsSecond(grad);
  Value *weight = channelsSecond(b.input("weight"));
  Value *result =
      b.call(OpKind::CgcConvolutionBackward,
             {grad, input, weight, b.arg("stride"), b.arg("padding"), b.arg("dilation"), false,
              Arg::ints(Dims{0, 0}), b.arg("groups"), Arg(Arg::List{true, false, false})});
  result = b.permute(result, {0, 2, 3, 1});
  return Values{result->tensor().isContiguous() ? result : b.call(OpKind::Contiguous, {result})};
}

} // namespace

const OpDef defs::CgcConv2dInputGradient = {
    .schema = "(Tensor grad_out, Tensor weight, int[] size, int[] stride, int[] padding, int[] "
              "dilation, int groups) -> Tensor",
    .traits = kPure | kGemm,
    .infer = inferCgcConv2dInputGradient,
    .decompose = defineCgcConv2dInputGradient,
    .doc = "The gradient of the images [N, H, W, C] of cgc.conv2d, where size is [H, W], from "
           "grad_out [N, OH, OW, O] and weight [O, KH, KW, C / groups].",
};

} // namespace cgc::ir
