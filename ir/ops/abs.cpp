// aten.abs: absolute value.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Abs = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryKeep,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.mul(b.grad(), b.call(OpKind::Sign, {b.arg("self")})));
          return Status::ok();
        },
    .doc = "|self|, elementwise; same dtype.",
};

} // namespace cgc::ir
