// aten.cos: cosine.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Cos = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "The cosine of self in radians, elementwise; integers give f32.",
};

} // namespace cgc::ir
