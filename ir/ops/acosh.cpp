// aten.acosh: area hyperbolic cosine.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Acosh = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.mul(b.grad(), b.call(OpKind::Rsqrt,
                                               {b.sub(b.mul(b.arg("self"), b.arg("self")), 1.0)})));
          return Status::ok();
        },
    .doc = "acosh(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
