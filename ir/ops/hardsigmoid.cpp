// aten.hardsigmoid: hard sigmoid.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Hardsigmoid = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.div(gradient::inside(b, -3, 3), 6.0));
          return Status::ok();
        },
    .doc = "clamp(self + 3, 0, 6) / 6, elementwise; floating dtypes.",
};

} // namespace cgc::ir
