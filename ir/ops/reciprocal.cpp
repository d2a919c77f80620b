// aten.reciprocal: reciprocal.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Reciprocal = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          Value *squared = b.mul(b.result(), b.result());
          b.set("self", b.mul(b.neg(b.grad()), squared));
          return Status::ok();
        },
    .doc = "1 / self, elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
