// aten.atan: arc tangent.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Atan = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "atan(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
