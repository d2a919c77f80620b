// cgc.batch_norm_backward: the gradients of batch normalization in training.
#include "ir/ops/normalization_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcBatchNormBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (args.tensor("grad_out").sizes != input.sizes)
    return rules::mismatch("grad_out", "of the sizes of 'input'", args.tensor("grad_out"));
  if (input.rank() < 2 || !isFloating(input.dtype))
    return rules::mismatch("input", "[N, C, ...] of a floating dtype", input);
  const int64_t channels = args.boolean("channels_last") ? input.sizes.back() : input.sizes[1];
  for (llvm::StringRef name : {"weight", "mean", "invstd", "bias"})
    if (!args.isNone(name) && args.tensor(name).sizes != Dims{channels})
      return rules::mismatch(name, "[" + llvm::Twine(channels) + "], as the channels of 'input'",
                             args.tensor(name));
  const bool isMasked = !args.isNone("result");
  if (!isMasked && !args.isNone("addend"))
    return rules::refuse("'addend' requires 'result'");
  if (isMasked && args.boolean("relu"))
    return rules::refuse("'result' says where relu's gradient is 0; 'relu' would say it again");
  for (llvm::StringRef name : {"grad_out", "result", "addend"}) {
    if (!isMasked || args.isNone(name))
      continue;
    CGC_TRY(rules::sameDType(args, "input", {name}));
    if (args.tensor(name).sizes != input.sizes)
      return rules::mismatch(name, "of the sizes of 'input'", args.tensor(name));
  }
  CGC_TRY(rules::addDense(results, input.dtype, input.sizes));
  if (!args.isNone("weight")) {
    const TensorType &weight = args.tensor("weight");
    CGC_TRY(rules::addDense(results, weight.dtype, weight.sizes));
    CGC_TRY(rules::addDense(results, weight.dtype, weight.sizes));
  }
  return isMasked ? rules::addDense(results, input.dtype, input.sizes) : Status::ok();
}

/// In f32 for 16 bits.
Result<Values> defineCgcBatchNormBackward(OpBuilder &b) {
  const TensorType &type = b.input("input")->tensor();
  const auto [sizes, others] = rules::channelsOf(type, b.args().boolean("channels_last"));
  Value *x = b.widened(b.input("input"));
  const DType dtype = x->tensor().dtype;
  const auto broadcast = [&](llvm::StringRef name) {
    Value *value = b.input(name);
    return value ? b.reshape(b.to(value, dtype), sizes) : nullptr;
  };
  Value *mean = broadcast("mean"), *rstd = broadcast("invstd");
  Value *y = rules::normalized(b, x, mean, rstd);
  Value *weight = broadcast("weight"), *bias = broadcast("bias");
  Value *masked = b.input("grad_out");
  if (Value *addend = b.input("addend"))
    masked = b.add(masked, addend);
  if (Value *result = b.input("result"))
    masked = b.call(OpKind::CgcReluBackward, {masked, result});
  Value *grad = b.to(masked, dtype);
  if (b.args().boolean("relu"))
    grad = b.call(OpKind::CgcReluBackward, {grad, rules::affine(b, y, weight, bias)});
  Value *gradOfY = rules::affine(b, grad, weight, /*bias=*/nullptr);
  Value *gradOfX = rules::normalizedGradient(b, gradOfY, y, rstd, others);
  Values values{b.to(gradOfX, type.dtype)};
  if (weight)
    for (Value *product : {b.mul(grad, y), grad}) {
      Value *sum = b.sum(product, others, /*keepDim=*/false);
      values.push_back(b.to(sum, b.input("weight")->tensor().dtype));
    }
  if (b.input("result"))
    values.push_back(masked);
  return values;
}

} // namespace

const OpDef defs::CgcBatchNormBackward = {
    .schema = "(Tensor grad_out, Tensor input, Tensor? weight, Tensor mean, Tensor invstd, float "
              "eps, Tensor? bias=none, bool relu=false, bool channels_last=false, Tensor? "
              "result=none, Tensor? addend=none) -> Tensor[]",
    .traits = kPure | kReduction,
    .infer = inferCgcBatchNormBackward,
    .decompose = defineCgcBatchNormBackward,
    .doc =
        "The gradients of input and, with a weight, of weight and bias, from the results mean and "
        "invstd of batch_norm_train. With relu, grad_out is the gradient of relu's result; bias "
        "says where that is 0. With result, relu's of the normalized tensor and a residual, "
        "grad_out plus addend is its gradient; the gradient before relu, also the residual's, is "
        "the last result.",
};

} // namespace cgc::ir
