// aten.hardswish: hard swish.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Hardswish = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .gradient = [](GradientBuilder &b) -> Status {
      const Arg &self = b.arg("self");
      Value *derivative = b.add(b.div(self, 3.0), 0.5);
      derivative = b.call(OpKind::Where, {b.call(OpKind::Lt, {self, 3}), derivative, 1.0});
      b.set("self", b.mul(b.grad(), b.where(b.call(OpKind::Gt, {self, -3}), derivative)));
      return Status::ok();
    },
    .doc = "self * clamp(self + 3, 0, 6) / 6, elementwise; floating dtypes.",
};

} // namespace cgc::ir
