// aten.rsqrt: reciprocal square root.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Rsqrt = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "1 / sqrt(self), elementwise; integers give f32.",
};

} // namespace cgc::ir
