// cgc.layer_norm_statistics: layer normalization that keeps its statistics for the backward pass.
#include "ir/ops/layer_norm_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcLayerNormStatistics(const InferArgs &args, rules::Results &results) {
  CGC_TRY(rules::layerNorm(args, results, {"weight", "bias"}));
  const TensorType &input = args.tensor("input");
  if (!args.isNone("dtype")) {
    if (!isFloating(args.dtype("dtype")))
      return rules::refuse("expected 'dtype' to be floating");
    results.back().type.dtype = args.dtype("dtype");
  }
  const size_t normalized = args.ints("normalized_shape").size();
  Dims sizes = input.sizes;
  std::fill(sizes.end() - normalized, sizes.end(), 1);
  const DType dtype = rules::statisticsDType(input.dtype);
  CGC_TRY(rules::addDense(results, dtype, sizes));
  CGC_TRY(rules::addDense(results, dtype, sizes));
  if (args.isNone("addend"))
    return Status::ok();
  const TensorType &addend = args.tensor("addend");
  if (addend.sizes != input.sizes || !isFloating(addend.dtype))
    return rules::mismatch("addend", "of a floating dtype, of the sizes of 'input'", addend);
  return rules::addDense(results, input.dtype, input.sizes);
}

} // namespace

const OpDef defs::CgcLayerNormStatistics = {
    .schema = "(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps, "
              "dtype? dtype=none, Tensor? addend=none) -> Tensor[]",
    .traits = kPure | kReduction,
    .infer = inferCgcLayerNormStatistics,
    .doc = "layer_norm of input, in the dtype if that is given, then mean and 1 / sqrt(variance + "
           "eps) of each row, [..., 1, ...]; these in f32 if input has 16 bits. With an addend, "
           "input plus addend is normalized, and is the last result.",
};

} // namespace cgc::ir
