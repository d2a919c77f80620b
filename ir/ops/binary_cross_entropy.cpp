// aten.binary_cross_entropy: cross entropy of probabilities.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferBinaryCrossEntropy(const InferArgs &args, rules::Results &results) {
  return rules::weightedLoss(args, {"weight"}, results);
}

/// Logarithms are at least -100, as in LibTorch, so that the loss of a certain error is finite.
Result<Values> defineBinaryCrossEntropy(OpBuilder &b) {
  Value *self = b.input("self"), *target = b.input("target");
  const auto bounded = [&](Value *logarithm) {
    return b.call(OpKind::ClampMin, {logarithm, -100.0});
  };
  Value *yes = bounded(b.call(OpKind::Log, {self}));
  Value *no = bounded(b.call(OpKind::Log1p, {b.neg(self)}));
  Value *missed = b.mul(b.sub(target, 1.0), no);
  Value *losses = b.sub(missed, b.mul(target, yes));
  return rules::reduced(b, b.arg("weight").isNone() ? losses : b.mul(losses, b.arg("weight")));
}

} // namespace

const OpDef defs::BinaryCrossEntropy = {
    .schema = "(Tensor self, Tensor target, Tensor? weight=none, int reduction=1) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferBinaryCrossEntropy,
    .decompose = defineBinaryCrossEntropy,
    .doc = "-weight * (target * log(self) + (1 - target) * log(1 - self)), elementwise and then "
           "reduced, with logarithms of at least -100. self are probabilities.",
};

} // namespace cgc::ir
