// aten.tan: tangent.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Tan = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.mul(b.grad(), b.add(b.mul(b.result(), b.result()), 1.0)));
          return Status::ok();
        },
    .doc = "tan(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
