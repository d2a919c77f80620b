// aten.asinh: area hyperbolic sine.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Asinh = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "asinh(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
