// aten.sinh: hyperbolic sine.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Sinh = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.mul(b.grad(), b.call(OpKind::Cosh, {b.arg("self")})));
          return Status::ok();
        },
    .doc = "sinh(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
