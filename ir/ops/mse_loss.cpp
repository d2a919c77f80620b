// aten.mse_loss: squared error.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferMseLoss(const InferArgs &args, rules::Results &results) {
  return rules::loss(args, {"self", "target"}, results);
}

Result<Values> defineMseLoss(OpBuilder &b) {
  Value *difference = b.sub(b.arg("self"), b.arg("target"));
  return rules::reduced(b, b.mul(difference, difference));
}

} // namespace

const OpDef defs::MseLoss = {
    .schema = "(Tensor self, Tensor target, int reduction=1) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferMseLoss,
    .decompose = defineMseLoss,
    .doc = "The squared difference of self and target, reduced.",
};

} // namespace cgc::ir
