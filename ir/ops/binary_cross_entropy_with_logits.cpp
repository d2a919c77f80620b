// aten.binary_cross_entropy_with_logits: cross entropy of logits.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferBinaryCrossEntropyWithLogits(const InferArgs &args, rules::Results &results) {
  return rules::weightedLoss(args, {"weight", "pos_weight"}, results);
}

/// log(sigmoid(x)) = -softplus(-x).
Result<Values> defineBinaryCrossEntropyWithLogits(OpBuilder &b) {
  Value *self = b.input("self"), *target = b.input("target"), *positive = b.input("pos_weight");
  Value *negative = b.mul(b.call(OpKind::Rsub, {target, 1.0}), self);
  Value *softplus = b.call(OpKind::Softplus, {b.neg(self)});
  if (positive) {
    Value *more = b.mul(b.sub(positive, 1.0), target);
    softplus = b.mul(b.add(more, 1.0), softplus);
  }
  Value *losses = b.add(negative, softplus);
  return rules::reduced(b, b.arg("weight").isNone() ? losses : b.mul(losses, b.arg("weight")));
}

} // namespace

const OpDef defs::BinaryCrossEntropyWithLogits = {
    .schema = "(Tensor self, Tensor target, Tensor? weight=none, Tensor? pos_weight=none, int "
              "reduction=1) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferBinaryCrossEntropyWithLogits,
    .decompose = defineBinaryCrossEntropyWithLogits,
    .doc = "binary_cross_entropy of sigmoid(self), without a loss of accuracy for large "
           "magnitudes; the "
           "part of the target counts pos_weight times.",
};

} // namespace cgc::ir
