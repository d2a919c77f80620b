// aten.acosh: area hyperbolic cosine.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Acosh = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "acosh(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
