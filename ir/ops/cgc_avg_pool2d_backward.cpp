// cgc.avg_pool2d_backward: the gradient of average pooling.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcAvgPool2dBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  llvm::SmallVector<Inferred, 1> pooled;
  CGC_TRY(rules::averagePool<2>(args, pooled));
  if (args.tensor("grad_output").sizes != pooled.front().type.sizes)
    return rules::mismatch(
        "grad_output", rules::toString(pooled.front().type.sizes) + ", as the averages of 'self'",
        args.tensor("grad_output"));
  CGC_TRY(rules::sameDType(args, "self", {"grad_output"}));
  return rules::addDense(results, self.dtype, self.sizes);
}

/// In f32 for 16 bits. Averages are products with the part that each element has in each window,
/// one dimension after the other.
Result<Values> defineCgcAvgPool2dBackward(OpBuilder &b) {
  const InferArgs args = b.args();
  CGC_ASSIGN_OR_RETURN(const rules::PoolWindows windows, rules::poolWindows(args, 2));
  const TensorType &self = args.tensor("self");
  Value *grad = b.widened(b.input("grad_output"));
  const DType dtype = grad->tensor().dtype;
  const bool hasDivisor = !args.isNone("divisor_override");
  if (hasDivisor)
    grad = b.div(grad, b.arg("divisor_override"));
  for (unsigned i : {0, 1}) {
    const int64_t dim = self.rank() - 2 + i, size = self.sizes[dim], padding = windows.padding[i];
    Value *window = b.call(OpKind::Arange, {0, grad->tensor().sizes[dim]});
    Value *begin = b.sub(b.mul(window, windows.stride[i]), padding);
    begin = b.call(OpKind::Unsqueeze, {begin, 1});
    Value *end = b.add(begin, windows.kernel[i]);
    // No average counts what is behind the padding, where the last window may end.
    const bool countsPadding = args.boolean("count_include_pad");
    end = b.call(OpKind::Clamp, {end, Arg(), countsPadding ? size + padding : size});
    if (!countsPadding)
      begin = b.call(OpKind::Clamp, {begin, 0});
    Value *weights = b.to(gradient::insideWindows(b, begin, end, size), dtype);
    if (!hasDivisor)
      weights = b.div(weights, b.to(b.sub(end, begin), dtype));
    grad = gradient::timesAlong(b, grad, dim, weights);
  }
  return Values{b.to(grad, self.dtype)};
}

} // namespace

const OpDef defs::CgcAvgPool2dBackward = {
    .schema = "(Tensor grad_output, Tensor self, int[] kernel_size, int[] stride, int[] padding, "
              "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCgcAvgPool2dBackward,
    .aten = "aten::avg_pool2d_backward.grad_input",
    .decompose = defineCgcAvgPool2dBackward,
    .doc = "The gradient of self [N, C, H, W] (or without N): each element of grad_output spread "
           "over its window.",
};

} // namespace cgc::ir
