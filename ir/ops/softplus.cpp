// aten.softplus: softplus.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Softplus = {
    .schema = "(Tensor self, number beta=1, number threshold=20) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .gradient = [](GradientBuilder &b) -> Status {
      Value *scaled = b.mul(b.arg("self"), b.number("beta"));
      Value *isLinear = b.call(OpKind::Gt, {scaled, b.number("threshold")});
      Value *derivative = b.call(OpKind::Sigmoid, {scaled});
      b.set("self", b.mul(b.grad(), b.call(OpKind::Where, {isLinear, 1.0, derivative})));
      return Status::ok();
    },
    .doc = "log(1 + exp(beta * self)) / beta, or self where beta * self exceeds threshold, "
           "elementwise; floating dtypes.",
};

} // namespace cgc::ir
