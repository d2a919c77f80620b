// cgc.batch_norm_train: batch normalization by the statistics of the batch.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/normalization_rules.h"

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
  if (b.input("residual") || b.arg("relu") != Arg(false))
    return rules::refuse("passes fuse after gradients are taken");
  for (unsigned i = 1; i < b.node().numResults(); ++i)
    if (b.grad(i))
      return rules::refuse(
          "the loss depends on the statistics of a batch; only the normalized input "
          "has a gradient");
  Node *grads = b.callNode(OpKind::CgcBatchNormBackward,
                           {b.grad(), b.arg("input"), b.arg("weight"), b.result(1), b.result(2),
                            b.number("eps"), Arg(), false, b.arg("channels_last")});
  b.set("input", grads->result(0));
  if (b.input("weight")) {
    b.set("weight", grads->result(1));
    b.set("bias", grads->result(2));
  } else if (b.needs("bias")) {
    const Dims others =
        rules::channelsOf(b.grad()->tensor(), b.args().boolean("channels_last")).others;
    b.set("bias", b.sum(b.grad(), others, /*keepDim=*/false));
  }
  return Status::ok();
}

Result<Values> defineCgcBatchNormTrain(OpBuilder &b) {
  const TensorType &type = b.input("input")->tensor();
  const auto [sizes, others] = rules::channelsOf(type, b.args().boolean("channels_last"));
  const int64_t count = type.numElements() / sizes.front();
  const double correction = static_cast<double>(count) / static_cast<double>(count - 1);
  Value *x = b.widened(b.input("input"));
  return rules::batchNormTrain(b, x, rules::statisticsOf(b, x, others, b.number("eps")),
                               correction);
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
    .decompose = defineCgcBatchNormTrain,
    .doc =
        "input [N, C, ...], or [N, ..., C], normalized by the mean and the biased variance of each "
        "channel, plus "
        "residual, through relu if asked; these "
        "means and 1 / sqrt(variance + eps), [C], in f32 if input has 16 bits; and, where they are "
        "given, the running mean and "
        "the running variance moved by momentum towards mean and unbiased variance.",
};

} // namespace cgc::ir
