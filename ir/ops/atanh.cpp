// aten.atanh: area hyperbolic tangent.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Atanh = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "atanh(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
