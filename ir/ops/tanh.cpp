// aten.tanh: hyperbolic tangent.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Tanh = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self",
                b.mul(b.grad(), b.call(OpKind::Rsub, {b.mul(b.result(), b.result()), 1.0})));
          return Status::ok();
        },
    .doc = "The hyperbolic tangent, elementwise; integers give f32.",
};

} // namespace cgc::ir
