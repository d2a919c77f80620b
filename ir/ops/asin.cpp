// aten.asin: arc sine.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Asin = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self",
                b.mul(b.grad(),
                      b.call(OpKind::Rsqrt,
                             {b.call(OpKind::Rsub, {b.mul(b.arg("self"), b.arg("self")), 1.0})})));
          return Status::ok();
        },
    .doc = "asin(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
