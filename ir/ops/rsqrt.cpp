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
          Value *cubed = gradient::power(b, b.result(), 3);
          b.set("self", b.mul(b.mul(b.grad(), -0.5), cubed));
          return Status::ok();
        },
    .doc = "1 / sqrt(self), elementwise; integers give f32.",
};

} // namespace cgc::ir
