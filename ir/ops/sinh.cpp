// aten.sinh: hyperbolic sine.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Sinh = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "sinh(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
