// aten.reciprocal: reciprocal.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Reciprocal = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "1 / self, elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
