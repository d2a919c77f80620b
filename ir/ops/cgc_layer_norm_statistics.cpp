// cgc.layer_norm_statistics: layer normalization that keeps its statistics for the backward pass.
#include "ir/ops/layer_norm_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  CGC_TRY(rules::layerNorm(args, results));
  const TensorType &input = args.tensor("input");
  const size_t normalized = args.ints("normalized_shape").size();
  Dims sizes = input.sizes;
  std::fill(sizes.end() - normalized, sizes.end(), 1);
  const DType dtype = rules::statisticsDType(input.dtype);
  CGC_TRY(rules::addDense(results, dtype, sizes));
  return rules::addDense(results, dtype, sizes);
}

} // namespace

const OpDef defs::LayerNormStatistics = {
    .schema = "(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
              "(Tensor, Tensor, Tensor)",
    .traits = kPure | kReduction,
    .infer = infer,
    .doc = "layer_norm of input, then mean and 1 / sqrt(variance + eps) of each row, [..., 1, "
           "...]; these in f32 if input has 16 bits.",
};

} // namespace cgc::ir
