// aten.neg: negation.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Neg = {
    .schema = "(Tensor|number self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryKeep,
    .evaluate = host::neg,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.neg(b.grad()));
          return Status::ok();
        },
    .doc = "-self, elementwise; same dtype, which is not bool.",
};

} // namespace cgc::ir
