// aten.sin: sine.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Sin = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.mul(b.grad(), b.call(OpKind::Cos, {b.arg("self")})));
          return Status::ok();
        },
    .doc = "The sine of self in radians, elementwise; integers give f32.",
};

} // namespace cgc::ir
