// aten.l1_loss: absolute error.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Result<Values> defineL1Loss(OpBuilder &b) {
  return rules::reduced(b, b.call(OpKind::Abs, {b.sub(b.arg("self"), b.arg("target"))}));
}

} // namespace

const OpDef defs::L1Loss = {
    .schema = "(Tensor self, Tensor target, int reduction=1) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::pairLoss,
    .decompose = defineL1Loss,
    .doc = "The distance of self and target, reduced.",
};

} // namespace cgc::ir
