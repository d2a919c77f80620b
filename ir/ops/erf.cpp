// aten.erf: error function.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

#include <numbers>

namespace cgc::ir {

const OpDef defs::Erf = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", gradient::gaussian(b, std::numbers::inv_sqrtpi * 2));
          return Status::ok();
        },
    .doc = "The Gauss error function, elementwise; integers give f32.",
};

} // namespace cgc::ir
