// cgc.layer_norm_backward: the gradients of layer normalization.
#include "ir/ops/normalization_rules.h"

#include <numeric>

namespace cgc::ir {
namespace {

Status inferCgcLayerNormBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (args.tensor("grad_out").sizes != input.sizes)
    return rules::mismatch("grad_out", "of the sizes of 'input'", args.tensor("grad_out"));
  const DType grad = args.tensor("grad_out").dtype;
  if (!isFloating(grad) || dtypeSize(grad) != 2 || input.dtype != DType::F32)
    CGC_TRY(rules::sameDType(args, "input", {"grad_out"}));
  CGC_TRY(rules::layerNorm(args, results, {"weight", "bias"}));
  const size_t normalized = args.ints("normalized_shape").size();
  Dims rows = input.sizes;
  std::fill(rows.end() - static_cast<ptrdiff_t>(normalized), rows.end(), 1);
  for (llvm::StringRef name : {"mean", "rstd"})
    if (args.tensor(name).sizes != rows)
      return rules::mismatch(name, rules::toString(rows) + ", as the rows of 'input'",
                             args.tensor(name));
  for (llvm::StringRef name : {"weight", "bias"})
    if (!args.isNone(name))
      CGC_TRY(rules::addDense(results, args.tensor(name).dtype, args.tensor(name).sizes));
  if (!args.isNone("residual")) {
    CGC_TRY(rules::sameDType(args, "input", {"residual"}));
    if (args.tensor("residual").sizes != input.sizes)
      return rules::mismatch("residual", "of the sizes of 'input'", args.tensor("residual"));
  }
  if (args.isNone("copy"))
    return Status::ok();
  if (!isFloating(args.dtype("copy")))
    return rules::refuse("expected 'copy' to be a floating dtype");
  return rules::addDense(results, args.dtype("copy"), input.sizes);
}

/// In f32 for 16 bits.
Result<Values> defineCgcLayerNormBackward(OpBuilder &b) {
  Value *x = b.widened(b.input("input"));
  const DType dtype = x->tensor().dtype;
  const auto wide = [&](llvm::StringRef name) { return b.to(b.input(name), dtype); };
  Value *grad = wide("grad_out"), *mean = wide("mean"), *rstd = wide("rstd");
  Value *y = rules::normalized(b, x, mean, rstd);
  Value *gradOfY = rules::affine(b, grad, b.input("weight"), /*bias=*/nullptr);
  Value *gradOfX = rules::normalizedGradient(b, gradOfY, y, rstd, rules::normalizedDims(b.args()));
  gradOfX = b.to(gradOfX, b.input("input")->tensor().dtype);
  if (Value *residual = b.input("residual"))
    gradOfX = b.add(gradOfX, residual);
  Values values{gradOfX};
  Dims rows(x->tensor().sizes.size() - b.args().ints("normalized_shape").size());
  std::iota(rows.begin(), rows.end(), 0);
  if (Value *weight = b.input("weight"))
    values.push_back(b.to(b.sum(b.mul(grad, y), rows, /*keepDim=*/false), weight->tensor().dtype));
  if (Value *bias = b.input("bias"))
    values.push_back(b.to(b.sum(grad, rows, /*keepDim=*/false), bias->tensor().dtype));
  if (!b.arg("copy").isNone())
    values.push_back(b.to(gradOfX, b.args().dtype("copy")));
  return values;
}

} // namespace

const OpDef defs::CgcLayerNormBackward = {
    .schema = "(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, "
              "Tensor? weight, Tensor? bias, Tensor? residual=none, dtype? copy=none) -> Tensor[]",
    .traits = kPure | kReduction,
    .infer = inferCgcLayerNormBackward,
    .decompose = defineCgcLayerNormBackward,
    .doc = "The gradients of input and, where they are given, of weight and bias, from the results "
           "mean and rstd of layer_norm_statistics. The residual is added to the first. With copy, "
           "the last result is the first in that dtype. grad_out may have 16 bits if input is f32.",
};

} // namespace cgc::ir
