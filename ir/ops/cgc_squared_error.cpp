// cgc.squared_error: a squared error and its gradient.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcSquaredError(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  CGC_TRY(rules::sameDType(args, "self", {"target"}));
  if (args.tensor("target").sizes != self.sizes)
    return rules::mismatch("target", rules::toString(self.sizes) + ", as 'self'",
                           args.tensor("target"));
  CGC_TRY(rules::addDense(results, self.dtype, {}));
  return rules::addDense(results, self.dtype, self.sizes);
}

Result<Values> defineCgcSquaredError(OpBuilder &b) {
  Value *difference = b.sub(b.arg("self"), b.arg("target"));
  Value *sum = b.call(OpKind::Sum, {b.mul(difference, difference)});
  Value *loss = b.mul(sum, b.arg("loss_factor"));
  return Values{loss, b.mul(difference, b.arg("gradient_factor"))};
}

} // namespace

const OpDef defs::CgcSquaredError = {
    .schema = "(Tensor self, Tensor target, float loss_factor, float gradient_factor) -> (Tensor, "
              "Tensor)",
    .traits = kPure | kReduction,
    .infer = inferCgcSquaredError,
    .decompose = defineCgcSquaredError,
    .doc =
        "loss_factor times the sum of (self - target)^2, and gradient_factor times self - target.",
};

} // namespace cgc::ir
