// aten.sqrt: square root.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Sqrt = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "The square root, elementwise; integers give f32.",
};

} // namespace cgc::ir
