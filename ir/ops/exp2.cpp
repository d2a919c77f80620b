// aten.exp2: power of two.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

#include <numbers>

namespace cgc::ir {

const OpDef defs::Exp2 = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.mul(b.grad(), b.mul(b.result(), std::numbers::ln2)));
          return Status::ok();
        },
    .doc = "2 to the power of self, elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
