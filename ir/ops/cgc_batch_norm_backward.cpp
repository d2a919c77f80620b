// cgc.batch_norm_backward: the gradients of batch normalization in training.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcBatchNormBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (args.tensor("grad_out").sizes != input.sizes)
    return rules::mismatch("grad_out", "of the sizes of 'input'", args.tensor("grad_out"));
  if (input.rank() < 2)
    return rules::mismatch("input", "[N, C, ...]", input);
  const int64_t channels = args.boolean("channels_last") ? input.sizes.back() : input.sizes[1];
  for (llvm::StringRef name : {"weight", "mean", "invstd", "bias"})
    if (!args.isNone(name) && args.tensor(name).sizes != Dims{channels})
      return rules::mismatch(name, "[" + llvm::Twine(channels) + "], as the channels of 'input'",
                             args.tensor(name));
  CGC_TRY(rules::addDense(results, input.dtype, input.sizes));
  if (args.isNone("weight"))
    return Status::ok();
  const TensorType &weight = args.tensor("weight");
  CGC_TRY(rules::addDense(results, weight.dtype, weight.sizes));
  return rules::addDense(results, weight.dtype, weight.sizes);
}

} // namespace

const OpDef defs::CgcBatchNormBackward = {
    .schema = "(Tensor grad_out, Tensor input, Tensor? weight, Tensor mean, Tensor invstd, float "
              "eps, Tensor? bias=none, bool relu=false, bool channels_last=false) -> Tensor[]",
    .traits = kPure | kReduction,
    .infer = inferCgcBatchNormBackward,
    .doc =
        "The gradients of input and, with a weight, of weight and bias, from the results mean and "
        "invstd of batch_norm_train. With relu, grad_out is the gradient of relu's result; bias "
        "says "
        "where that is 0.",
};

} // namespace cgc::ir
