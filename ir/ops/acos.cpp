// aten.acos: arc cosine.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Acos = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .gradient =
        [](GradientBuilder &b) {
          Value *squared = b.mul(b.arg("self"), b.arg("self"));
          Value *derivative = b.call(OpKind::Rsqrt, {b.call(OpKind::Rsub, {squared, 1.0})});
          b.set("self", b.mul(b.neg(b.grad()), derivative));
          return Status::ok();
        },
    .doc = "acos(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
