// cgc.batch_norm_train: batch normalization by the statistics of the batch.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (input.rank() < 2 || !isFloating(input.dtype))
    return rules::mismatch("input", "[N, C, ...] of a floating dtype", input);
  const int64_t channels = input.sizes[1];
  CGC_TRY(rules::addDense(results, input.dtype, input.sizes));
  const DType dtype = args.isNone("weight") ? input.dtype : args.tensor("weight").dtype;
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

} // namespace

const OpDef defs::BatchNormTrain = {
    .schema = "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
              "running_var, float momentum, float eps) -> Tensor[]",
    .traits = kPure | kReduction,
    .infer = infer,
    .doc =
        "input [N, C, ...] normalized by the mean and the biased variance of each channel; these "
        "means and 1 / sqrt(variance + eps), [C]; and, where they are given, the running mean and "
        "the running variance moved by momentum towards mean and unbiased variance.",
};

} // namespace cgc::ir
