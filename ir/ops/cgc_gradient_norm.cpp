// cgc.gradient_norm: the Euclidean norm of several tensors together.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  for (const TensorType *gradient : args.tensors("gradients"))
    if (!isFloating(gradient->dtype))
      return rules::mismatch("gradients", "of floating dtypes", *gradient);
  return rules::addDense(results, DType::F32, {});
}

} // namespace

const OpDef defs::GradientNorm = {
    .schema = "(Tensor[] gradients) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .doc = "f32[]: the square root of the sum of the squares of all elements of all tensors. Not "
           "finite if one of them is not.",
};

} // namespace cgc::ir
