// cgc.pool2d_backward: the gradient of cgc.pool2d.
#include "ir/op_builder.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcPool2dBackward(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(const Dims sizes, rules::imagePoolSizes(args));
  const TensorType &input = args.tensor("input");
  CGC_TRY(rules::sameDType(args, "input", {"grad_out"}));
  if (args.tensor("grad_out").sizes != sizes)
    return rules::mismatch("grad_out", rules::toString(sizes) + ", as the result of the pool",
                           args.tensor("grad_out"));
  return rules::addDense(results, input.dtype, input.sizes);
}

Result<Values> defineCgcPool2dBackward(OpBuilder &b) {
  const auto channelsSecond = [&](llvm::StringRef name) {
    return b.permute(b.input(name), {0, 3, 1, 2});
  };
  const Arg grad = channelsSecond("grad_out"), image = channelsSecond("input");
  const Arg &kernel = b.arg("kernel_size"), &stride = b.arg("stride"), &padding = b.arg("padding"),
            &ceil = b.arg("ceil_mode"), &dilation = b.arg("dilation");
  Value *result;
  if (b.args().str("kind") == "max") {
    Node *maxima =
        b.callNode(OpKind::CgcMaxPool2dIndices, {image, kernel, stride, padding, dilation, ceil});
    result = b.call(OpKind::CgcMaxPool2dBackward,
                    {grad, image, kernel, stride, padding, dilation, ceil, maxima->result(1)});
  } else {
    result = b.call(OpKind::CgcAvgPool2dBackward, {grad, image, kernel, stride, padding, ceil,
                                                   b.arg("counts_padding"), b.arg("divisor")});
  }
  result = b.permute(result, {0, 2, 3, 1});
  return Values{result->tensor().isContiguous() ? result : b.call(OpKind::Contiguous, {result})};
}

} // namespace

const OpDef defs::CgcPool2dBackward = {
    .schema = "(Tensor grad_out, Tensor input, str kind, int[] kernel_size, int[] stride=[], int[] "
              "padding=[0,0], int[] dilation=[1,1], bool ceil_mode=false, bool "
              "counts_padding=true, int? divisor=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCgcPool2dBackward,
    .decompose = defineCgcPool2dBackward,
    .doc = "The gradient of input [N, H, W, C] of cgc.pool2d: each element of grad_out [N, OH, OW, "
           "C] spread over its window, or added to the first of the maxima of its window.",
};

} // namespace cgc::ir
