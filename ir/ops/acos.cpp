// aten.acos: arc cosine.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Acos = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "acos(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
