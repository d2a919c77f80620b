// cgc.conv2d_weight_gradient: the gradient of the weight of cgc.conv2d.
#include "ir/op_builder.h"
#include "ir/ops/convolution_rules.h"

namespace cgc::ir {
namespace {

/// The sizes [O, KH, KW, C / groups] of the weight.
Result<Dims> weightSizes(const InferArgs &args) {
  const Dims &grad = args.tensor("grad_out").sizes, &input = args.tensor("input").sizes;
  const Dims kernel = args.ints("kernel_size");
  if (kernel.size() != 2 || llvm::any_of(kernel, [](int64_t extent) { return extent < 1; }))
    return rules::refuse("expected 'kernel_size' to be [KH, KW], got " + rules::toString(kernel));
  if (grad.size() != 4 || input.size() != 4)
    return rules::refuse("expected 'grad_out' and 'input' to have four dimensions");
  const int64_t groups = std::max(args.integer("groups"), int64_t{1});
  return Dims{grad[3], kernel[0], kernel[1], input[3] / groups};
}

Status inferCgcConv2dWeightGradient(const InferArgs &args, rules::Results &results) {
  const TensorType &grad = args.tensor("grad_out"), &input = args.tensor("input");
  if (!isFloating(input.dtype))
    return rules::mismatch("input", "[N, H, W, C] of a floating dtype", input);
  CGC_TRY(rules::sameDType(args, "input", {"grad_out"}));
  const DType dtype = args.dtype("dtype");
  if (!isFloating(dtype))
    return rules::refuse("expected 'dtype' to be floating");
  CGC_ASSIGN_OR_RETURN(const Dims weight, weightSizes(args));
  CGC_ASSIGN_OR_RETURN(const Dims sizes, rules::imageConvolutionSizes(args, input.sizes, weight));
  if (grad.sizes != sizes)
    return rules::mismatch("grad_out",
                           rules::toString(sizes) + ", as the result of the convolution", grad);
  return rules::addDense(results, dtype, weight);
}

Result<Values> defineCgcConv2dWeightGradient(OpBuilder &b) {
  const DType dtype = b.args().dtype("dtype");
  CGC_ASSIGN_OR_RETURN(const Dims sizes, weightSizes(b.args()));
  const auto channelsSecond = [&](Value *value) { return b.permute(value, {0, 3, 1, 2}); };
  Value *grad = channelsSecond(b.to(b.input("grad_out"), dtype));
  Value *input = channelsSecond(b.to(b.input("input"), dtype));
  Value *zero = b.call(OpKind::Full, {Arg::ints(Dims()), 0.0, dtype});
  Value *weight = channelsSecond(b.expand(zero, sizes)); // Only its sizes count.
  Value *result =
      b.call(OpKind::CgcConvolutionBackward,
             {grad, input, weight, b.arg("stride"), b.arg("padding"), b.arg("dilation"), false,
              Arg::ints(Dims{0, 0}), b.arg("groups"), Arg(Arg::List{false, true, false})});
  result = b.permute(result, {0, 2, 3, 1});
  return Values{result->tensor().isContiguous() ? result : b.call(OpKind::Contiguous, {result})};
}

} // namespace

const OpDef defs::CgcConv2dWeightGradient = {
    .schema = "(Tensor grad_out, Tensor input, int[] kernel_size, int[] stride, int[] padding, "
              "int[] dilation, int groups, dtype dtype) -> Tensor",
    .traits = kPure | kGemm,
    .infer = inferCgcConv2dWeightGradient,
    .decompose = defineCgcConv2dWeightGradient,
    .doc = "The gradient of the weight [O, KH, KW, C / groups] of cgc.conv2d, of dtype `dtype`, "
           "where kernel_size is [KH, KW], from grad_out [N, OH, OW, O] and input [N, H, W, C].",
};

} // namespace cgc::ir
