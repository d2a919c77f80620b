// aten.rsqrt: reciprocal square root.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Rsqrt = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.mul(b.mul(b.grad(), -0.5), gradient::power(b, b.result(), 3)));
          return Status::ok();
        },
    .doc = "1 / sqrt(self), elementwise; integers give f32.",
};

} // namespace cgc::ir
