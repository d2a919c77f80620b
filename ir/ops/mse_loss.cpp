// aten.mse_loss: squared error.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Result<Values> defineMseLoss(OpBuilder &b) {
  Value *difference = b.sub(b.arg("self"), b.arg("target"));
  return rules::reduced(b, b.mul(difference, difference));
}

} // namespace

const OpDef defs::MseLoss = {
    .schema = "(Tensor self, Tensor target, int reduction=1) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::pairLoss,
    .decompose = defineMseLoss,
    .doc = "The squared difference of self and target, reduced.",
};

} // namespace cgc::ir
