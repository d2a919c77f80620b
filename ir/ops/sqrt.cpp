// aten.sqrt: square root.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Sqrt = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .evaluate = host::sqrt,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.div(b.grad(), b.mul(b.result(), 2.0)));
          return Status::ok();
        },
    .doc = "The square root, elementwise; integers give f32.",
};

} // namespace cgc::ir
