// aten.cosh: hyperbolic cosine.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Cosh = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "cosh(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
