// aten.erf: error function.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Erf = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "The Gauss error function, elementwise; integers give f32.",
};

} // namespace cgc::ir
