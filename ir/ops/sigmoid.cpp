// aten.sigmoid: logistic function.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Sigmoid = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self",
                b.mul(b.grad(), b.mul(b.result(), b.call(OpKind::Rsub, {b.result(), 1.0}))));
          return Status::ok();
        },
    .doc = "1 / (1 + exp(-self)), elementwise; integers give f32.",
};

} // namespace cgc::ir
