// aten.silu: sigmoid linear unit.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Silu = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .gradient = [](GradientBuilder &b) { return gradient::gated(b, 1); },
    .doc = "self * sigmoid(self), elementwise; floating dtypes.",
};

} // namespace cgc::ir
