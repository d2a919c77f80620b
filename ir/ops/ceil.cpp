// aten.ceil: rounding up.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Ceil = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryKeep,
    .doc = "The least integer that is not below self, elementwise; same dtype, which is not bool.",
};

} // namespace cgc::ir
