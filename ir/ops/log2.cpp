// aten.log2: logarithm to base two.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

#include <numbers>

namespace cgc::ir {

const OpDef defs::Log2 = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.div(b.grad(), b.mul(b.arg("self"), std::numbers::ln2)));
          return Status::ok();
        },
    .doc = "log2(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
