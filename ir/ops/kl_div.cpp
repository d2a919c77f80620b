// aten.kl_div: Kullback-Leibler divergence.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Result<Values> defineKlDiv(OpBuilder &b) {
  Value *self = b.input("self"), *target = b.input("target");
  if (b.args().boolean("log_target")) {
    Value *difference = b.sub(target, self);
    return rules::reduced(b, b.mul(b.call(OpKind::Exp, {target}), difference));
  }
  // target * log(target) is 0 where the target is.
  Value *isZero = b.call(OpKind::Eq, {target, 0.0});
  Value *logarithm = b.call(OpKind::Log, {target});
  Value *entropy = b.call(OpKind::Where, {isZero, 0.0, b.mul(target, logarithm)});
  return rules::reduced(b, b.sub(entropy, b.mul(target, self)));
}

} // namespace

const OpDef defs::KlDiv = {
    .schema = "(Tensor self, Tensor target, int reduction=1, bool log_target=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::pairLoss,
    .decompose = defineKlDiv,
    .doc = "The Kullback-Leibler divergence of target from the log-probabilities self, "
           "elementwise and then reduced: target * (log(target) - self), or exp(target) * (target "
           "- self) with log_target.",
};

} // namespace cgc::ir
