// cgc.convolution_backward: the gradients of a convolution.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcConvolutionBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight");
  CGC_TRY(rules::sameDType(args, "input", {"weight", "grad_output"}));
  if (input.rank() < 3 || !isFloating(input.dtype))
    return rules::mismatch("input", "[N, C, ...] of a floating dtype", input);
  for (llvm::StringRef name : {"weight", "grad_output"})
    if (args.tensor(name).rank() != input.rank())
      return rules::mismatch(name, "of the rank of 'input'", args.tensor(name));
  const Dims mask = args.ints("output_mask");
  if (mask.size() != 3)
    return rules::refuse("expected 'output_mask' to have three elements");
  if (mask[0])
    CGC_TRY(rules::addDense(results, input.dtype, input.sizes));
  if (mask[1])
    CGC_TRY(rules::addDense(results, weight.dtype, weight.sizes));
  if (mask[2])
    CGC_TRY(rules::addDense(results, weight.dtype, {args.tensor("grad_output").sizes[1]}));
  return Status::ok();
}

} // namespace

const OpDef defs::CgcConvolutionBackward = {
    .schema = "(Tensor grad_output, Tensor input, Tensor weight, int[] stride, int[] padding, "
              "int[] dilation, bool transposed, int[] output_padding, int groups, bool[] "
              "output_mask) -> Tensor[]",
    .traits = kPure | kGemm,
    .infer = inferCgcConvolutionBackward,
    .doc = "The gradients of input, weight and bias [O], of those that output_mask asks for. input "
           "has a batch dimension.",
};

} // namespace cgc::ir
