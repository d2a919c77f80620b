// aten.erfc: complementary error function.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

#include <numbers>

namespace cgc::ir {

const OpDef defs::Erfc = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", gradient::gaussian(b, std::numbers::inv_sqrtpi * -2));
          return Status::ok();
        },
    .doc = "1 - erf(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
