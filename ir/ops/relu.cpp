// aten.relu: rectified linear unit.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Relu = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryKeep,
    .aten = "aten::clamp_min.out(..., 0)",
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.call(OpKind::CgcReluBackward, {b.grad(), b.result()}));
          return Status::ok();
        },
    .doc = "max(self, 0), elementwise; same dtype, which is not bool.",
};

} // namespace cgc::ir
