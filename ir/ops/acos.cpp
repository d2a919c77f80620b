// aten.acos: arc cosine.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Acos = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self",
                b.mul(b.neg(b.grad()),
                      b.call(OpKind::Rsqrt,
                             {b.call(OpKind::Rsub, {b.mul(b.arg("self"), b.arg("self")), 1.0})})));
          return Status::ok();
        },
    .doc = "acos(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
