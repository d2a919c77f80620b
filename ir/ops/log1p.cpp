// aten.log1p: logarithm of one plus x.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Log1p = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.div(b.grad(), b.add(b.arg("self"), 1.0)));
          return Status::ok();
        },
    .doc = "log(1 + self), exact near 0, elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
