// aten.exp: exponential.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Exp = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "e to the power of self, elementwise; integers give f32.",
};

} // namespace cgc::ir
