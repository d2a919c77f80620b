// aten.elu: exponential linear unit.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Elu = {
    .schema = "(Tensor self, number alpha=1, number scale=1, number input_scale=1) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .gradient = [](GradientBuilder &b) -> Status {
      const Arg &self = b.arg("self");
      const double scale = b.number("scale"), inner = b.number("input_scale");
      Value *derivative = b.call(OpKind::Exp, {b.mul(self, inner)});
      derivative = b.mul(derivative, scale * inner * b.number("alpha"));
      derivative = b.call(OpKind::Where, {b.call(OpKind::Le, {self, 0}), derivative, scale});
      b.set("self", b.mul(b.grad(), derivative));
      return Status::ok();
    },
    .doc = "scale * self where it is positive, else scale * alpha * (exp(input_scale * self) - 1), "
           "elementwise; floating dtypes.",
};

} // namespace cgc::ir
