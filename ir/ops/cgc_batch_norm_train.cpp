// cgc.batch_norm_train: batch normalization by the statistics of the batch.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/layer_norm_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcBatchNormTrain(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (input.rank() < 2 || !isFloating(input.dtype))
    return rules::mismatch("input", "[N, C, ...] of a floating dtype", input);
  const int64_t channels = args.boolean("channels_last") ? input.sizes.back() : input.sizes[1];
  if (channels == 0) // As in LibTorch, which reads element 0 of its parameters.
    return rules::mismatch("input", "of one channel or more", input);
  if (input.numElements() == channels) // Their variance would be 0 / 0.
    return rules::mismatch("input", "of more than one value for each channel", input);
  if (args.isNone("running_mean") != args.isNone("running_var"))
    return rules::refuse("expected 'running_mean' and 'running_var', or neither");
  if (!args.isNone("residual")) {
    CGC_TRY(rules::sameDType(args, "input", {"residual"}));
    if (args.tensor("residual").sizes != input.sizes)
      return rules::mismatch("residual", "of the sizes of 'input'", args.tensor("residual"));
  }
  CGC_TRY(rules::addDense(results, input.dtype, input.sizes));
  const DType dtype = rules::statisticsDType(input.dtype);
  for (int i = 0; i < 2; ++i)
    CGC_TRY(rules::addDense(results, dtype, {channels}));
  for (llvm::StringRef name : {"weight", "bias", "running_mean", "running_var"}) {
    if (args.isNone(name))
      continue;
    const TensorType &given = args.tensor(name);
    if (given.rank() != 1 || given.sizes[0] != channels)
      return rules::mismatch(name, "[" + llvm::Twine(channels) + "], as the channels of 'input'",
                             given);
    if (name.starts_with("running"))
      CGC_TRY(rules::addDense(results, given.dtype, given.sizes));
  }
  return Status::ok();
}

Status backwardCgcBatchNormTrain(GradientBuilder &b) {
  if (b.input("residual") || b.arg("relu") != Arg(false) || b.arg("channels_last") != Arg(false))
    return rules::refuse("passes fuse and reorder after gradients are taken");
  for (unsigned i = 1; i < b.node().numResults(); ++i)
    if (b.grad(i))
      return rules::refuse(
          "the loss depends on the statistics of a batch; only the normalized input "
          "has a gradient");
  Node *grads =
      b.callNode(OpKind::CgcBatchNormBackward, {b.grad(), b.arg("input"), b.arg("weight"),
                                                b.result(1), b.result(2), b.number("eps")});
  b.set("input", grads->result(0));
  if (b.input("weight")) {
    b.set("weight", grads->result(1));
    b.set("bias", grads->result(2));
  } else if (b.needs("bias")) {
    Dims others;
    for (int64_t d = 0; d < b.grad()->tensor().rank(); ++d)
      if (d != 1)
        others.push_back(d);
    b.set("bias", b.sum(b.grad(), others, /*keepDim=*/false));
  }
  return Status::ok();
}

} // namespace

const OpDef defs::CgcBatchNormTrain = {
    .schema =
        "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, float momentum, float eps, Tensor? residual=none, bool relu=false, bool "
        "channels_last=false) -> "
        "Tensor[]",
    .traits = kPure | kReduction,
    .infer = inferCgcBatchNormTrain,
    .gradient = backwardCgcBatchNormTrain,
    .doc =
        "input [N, C, ...], or [N, ..., C], normalized by the mean and the biased variance of each "
        "channel, plus "
        "residual, through relu if asked; these "
        "means and 1 / sqrt(variance + eps), [C], in f32 if input has 16 bits; and, where they are "
        "given, the running mean and "
        "the running variance moved by momentum towards mean and unbiased variance.",
};

} // namespace cgc::ir
