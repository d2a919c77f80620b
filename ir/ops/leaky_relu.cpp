// aten.leaky_relu: leaky rectified linear unit.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::LeakyRelu = {
    .schema = "(Tensor self, number negative_slope=0.01) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .gradient = [](GradientBuilder &b) -> Status {
      b.set("self", b.call(OpKind::Where, {b.call(OpKind::Gt, {b.arg("self"), 0}), b.grad(),
                                           b.mul(b.grad(), b.number("negative_slope"))}));
      return Status::ok();
    },
    .doc = "self where it is positive, else negative_slope * self, elementwise; floating dtypes.",
};

} // namespace cgc::ir
