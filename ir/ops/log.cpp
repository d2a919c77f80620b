// aten.log: natural logarithm.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Log = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "The natural logarithm, elementwise; integers give f32.",
};

} // namespace cgc::ir
