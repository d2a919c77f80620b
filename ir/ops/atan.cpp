// aten.atan: arc tangent.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Atan = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.div(b.grad(), b.add(b.mul(b.arg("self"), b.arg("self")), 1.0)));
          return Status::ok();
        },
    .doc = "atan(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
