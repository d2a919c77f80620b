// aten.asin: arc sine.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Asin = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "asin(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
