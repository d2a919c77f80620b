// aten.cosh: hyperbolic cosine.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Cosh = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.mul(b.grad(), b.call(OpKind::Sinh, {b.arg("self")})));
          return Status::ok();
        },
    .doc = "cosh(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
