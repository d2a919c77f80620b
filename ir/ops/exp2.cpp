// aten.exp2: power of two.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Exp2 = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "2 to the power of self, elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
