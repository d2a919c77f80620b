// aten.sinc: normalized sine cardinal.
#include "ir/gradient.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

#include <numbers>

namespace cgc::ir {
namespace {

/// 0 at 0, where the quotients are not defined.
Status backwardSinc(GradientBuilder &b) {
  Value *self = b.input("self");
  Value *angle = b.mul(self, std::numbers::pi);
  Value *slope = b.sub(b.mul(angle, b.call(OpKind::Cos, {angle})), b.call(OpKind::Sin, {angle}));
  slope = b.div(slope, b.mul(angle, self));
  Value *isZero = b.call(OpKind::Eq, {b.mul(self, self), 0});
  b.set("self", gradient::unless(b, isZero, b.mul(b.grad(), slope)));
  return Status::ok();
}

Result<Values> defineSinc(OpBuilder &b) {
  Value *self = b.to(b.input("self"), b.result()->tensor().dtype);
  Value *angle = b.mul(self, std::numbers::pi);
  Value *quotient = b.div(b.call(OpKind::Sin, {angle}), angle);
  return Values{b.call(OpKind::Where, {b.call(OpKind::Eq, {self, 0}), 1.0, quotient})};
}

} // namespace

const OpDef defs::Sinc = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient = backwardSinc,
    .decompose = defineSinc,
    .doc = "sin(pi * self) / (pi * self), and 1 at 0, elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
