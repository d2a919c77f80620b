// aten.tan: tangent.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Tan = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "tan(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
