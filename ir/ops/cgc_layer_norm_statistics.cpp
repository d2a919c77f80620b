// cgc.layer_norm_statistics: layer normalization that keeps its statistics for the backward pass.
#include "ir/ops/normalization_rules.h"

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

Result<Values> defineCgcLayerNormStatistics(OpBuilder &b) {
  Value *sum = b.input("input");
  const DType dtype = sum->tensor().dtype;
  if (Value *addend = b.input("addend"))
    sum = b.to(b.add(sum, addend), dtype);
  Value *x = b.widened(sum);
  const auto [mean, variance, rstd] =
      rules::statisticsOf(b, x, rules::normalizedDims(b.args()), b.number("eps"));
  Value *y =
      rules::affine(b, rules::normalized(b, x, mean, rstd), b.input("weight"), b.input("bias"));
  Values values{b.to(y, b.result()->tensor().dtype), mean, rstd};
  if (b.input("addend"))
    values.push_back(sum);
  return values;
}

} // namespace

const OpDef defs::CgcLayerNormStatistics = {
    .schema = "(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps, "
              "dtype? dtype=none, Tensor? addend=none) -> Tensor[]",
    .traits = kPure | kReduction,
    .infer = inferCgcLayerNormStatistics,
    .decompose = defineCgcLayerNormStatistics,
    .doc = "layer_norm of input, in the dtype if that is given, then mean and 1 / sqrt(variance + "
           "eps) of each row, [..., 1, ...]; these in f32 if input has 16 bits. With an addend, "
           "input plus addend is normalized, and is the last result.",
};

} // namespace cgc::ir
