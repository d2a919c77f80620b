// aten.smooth_l1_loss: smoothed absolute error.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Result<Values> defineSmoothL1Loss(OpBuilder &b) {
  const double beta = b.number("beta");
  Value *distance = b.call(OpKind::Abs, {b.sub(b.arg("self"), b.arg("target"))});
  if (beta == 0)
    return rules::reduced(b, distance);
  Value *isNear = b.call(OpKind::Lt, {distance, beta});
  Value *square = b.mul(b.mul(distance, distance), 0.5 / beta);
  return rules::reduced(b, b.call(OpKind::Where, {isNear, square, b.sub(distance, 0.5 * beta)}));
}

} // namespace

const OpDef defs::SmoothL1Loss = {
    .schema = "(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::pairLoss,
    .decompose = defineSmoothL1Loss,
    .doc = "The distance of self and target less beta / 2, and its square / (2 beta) where it is "
           "below beta; reduced.",
};

} // namespace cgc::ir
