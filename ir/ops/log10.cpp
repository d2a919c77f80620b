// aten.log10: logarithm to base ten.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

#include <numbers>

namespace cgc::ir {

const OpDef defs::Log10 = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.div(b.grad(), b.mul(b.arg("self"), std::numbers::ln10)));
          return Status::ok();
        },
    .doc = "log10(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
