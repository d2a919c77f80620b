// aten.exp: exponential.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Exp = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.mul(b.grad(), b.result()));
          return Status::ok();
        },
    .doc = "e to the power of self, elementwise; integers give f32.",
};

} // namespace cgc::ir
