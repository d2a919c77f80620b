// aten.log: natural logarithm.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Log = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.div(b.grad(), b.input("self")));
          return Status::ok();
        },
    .doc = "The natural logarithm, elementwise; integers give f32.",
};

} // namespace cgc::ir
