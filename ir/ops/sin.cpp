// aten.sin: sine.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Sin = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "The sine of self in radians, elementwise; integers give f32.",
};

} // namespace cgc::ir
