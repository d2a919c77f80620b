// aten.soft_margin_loss: logistic loss.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Result<Values> defineSoftMarginLoss(OpBuilder &b) {
  Value *product = b.mul(b.neg(b.input("target")), b.arg("self"));
  return rules::reduced(b, b.call(OpKind::Log1p, {b.call(OpKind::Exp, {product})}));
}

} // namespace

const OpDef defs::SoftMarginLoss = {
    .schema = "(Tensor self, Tensor target, int reduction=1) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::pairLoss,
    .decompose = defineSoftMarginLoss,
    .doc = "log(1 + exp(-target * self)), reduced.",
};

} // namespace cgc::ir
