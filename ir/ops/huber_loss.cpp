// aten.huber_loss: Huber's loss.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Result<Values> defineHuberLoss(OpBuilder &b) {
  const double delta = b.number("delta");
  Value *distance = b.call(OpKind::Abs, {b.sub(b.arg("self"), b.arg("target"))});
  Value *isNear = b.call(OpKind::Le, {distance, delta});
  Value *square = b.mul(b.mul(distance, distance), 0.5);
  Value *line = b.mul(b.sub(distance, 0.5 * delta), delta);
  return rules::reduced(b, b.call(OpKind::Where, {isNear, square, line}));
}

} // namespace

const OpDef defs::HuberLoss = {
    .schema = "(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::pairLoss,
    .decompose = defineHuberLoss,
    .doc = "Half of the squared distance of self and target, and delta * (distance - delta / 2) "
           "where it is above delta; reduced.",
};

} // namespace cgc::ir
