// aten.expm1: exponential minus one.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Expm1 = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.mul(b.grad(), b.add(b.result(), 1.0)));
          return Status::ok();
        },
    .doc = "exp(self) - 1, exact near 0, elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
