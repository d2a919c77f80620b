// cgc.normalize: division of vectors by their norm.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcNormalize(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (input.rank() < 1 || !isFloating(input.dtype))
    return rules::mismatch("input", "[..., E] of a floating dtype", input);
  return rules::addDense(results, input.dtype, input.sizes);
}

Result<Values> defineCgcNormalize(OpBuilder &b) {
  Value *norm = b.call(OpKind::LinalgVectorNorm, {b.arg("input"), 2, Arg::ints(Dims{-1}), true});
  return Values{b.div(b.arg("input"), b.call(OpKind::ClampMin, {norm, b.arg("eps")}))};
}

} // namespace

const OpDef defs::CgcNormalize = {
    .schema = "(Tensor input, float eps) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCgcNormalize,
    .rowArgs = [](const InferArgs &) { return RowArgs{"input"}; },
    .decompose = defineCgcNormalize,
    .doc = "input [..., E] divided by its Euclidean norm over the last dimension, or by eps where "
           "that is larger. Floating dtypes.",
};

} // namespace cgc::ir
