// aten.logit: inverse of sigmoid.
#include "ir/gradient.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

#include <limits>

namespace cgc::ir {
namespace {

/// LibTorch takes a negative eps for none.
bool isLogitBounded(const OpBuilder &b) {
  return !b.arg("eps").isNone() && b.number("eps") >= 0;
}

/// Without eps, NaN beyond 0 and 1; with eps, 0 where self was clamped.
Status backwardLogit(GradientBuilder &b) {
  Value *self = b.input("self");
  const bool clamps = isLogitBounded(b);
  const double low = clamps ? b.number("eps") : 0;
  Value *grad = b.div(b.grad(), b.mul(self, b.call(OpKind::Rsub, {self, 1})));
  Value *isOutside = b.call(OpKind::LogicalOr,
                            {b.call(OpKind::Lt, {self, low}), b.call(OpKind::Gt, {self, 1 - low})});
  const double outside = clamps ? 0 : std::numeric_limits<double>::quiet_NaN();
  b.set("self", b.call(OpKind::Where, {isOutside, outside, grad}));
  return Status::ok();
}

Result<Values> defineLogit(OpBuilder &b) {
  Value *x = b.to(b.input("self"), b.result()->tensor().dtype);
  if (isLogitBounded(b)) {
    // The lower bound comes last: it wins where eps is over 0.5.
    const double low = b.number("eps"), high = 1 - low;
    Value *bounded = b.call(OpKind::Where, {b.call(OpKind::Gt, {x, high}), high, x});
    x = b.call(OpKind::Where, {b.call(OpKind::Lt, {x, low}), low, bounded});
  }
  return Values{b.call(OpKind::Log, {b.div(x, b.call(OpKind::Rsub, {x, 1}))})};
}

} // namespace

const OpDef defs::Logit = {
    .schema = "(Tensor self, float? eps=none) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient = backwardLogit,
    .decompose = defineLogit,
    .doc = "log(x / (1 - x)) of self, which eps, if given, first bounds to [eps, 1 - eps], "
           "elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
