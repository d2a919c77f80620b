// aten.softshrink: soft shrinkage.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Softshrink = {
    .schema = "(Tensor self, number lambd=0.5) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self",
                gradient::unless(
                    b, b.call(OpKind::Le, {b.call(OpKind::Abs, {b.arg("self")}), b.arg("lambd")}),
                    b.grad()));
          return Status::ok();
        },
    .doc =
        "self moved toward 0 by lambd, and 0 where it would pass it, elementwise; floating dtypes.",
};

} // namespace cgc::ir
