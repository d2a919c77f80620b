// aten.tanh: hyperbolic tangent.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Tanh = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "The hyperbolic tangent, elementwise; integers give f32.",
};

} // namespace cgc::ir
