// aten.erfinv: inverse error function.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

#include <cmath>
#include <numbers>

namespace cgc::ir {

const OpDef defs::Erfinv = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          Value *square = b.mul(b.result(), b.result());
          const double factor = std::sqrt(std::numbers::pi) / 2;
          b.set("self", b.mul(b.grad(), b.mul(b.call(OpKind::Exp, {square}), factor)));
          return Status::ok();
        },
    .doc =
        "The number whose error function is self, elementwise: infinite at -1 and 1, NaN beyond. "
        "Integers and bools give f32.",
};

} // namespace cgc::ir
