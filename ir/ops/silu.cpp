// aten.silu: sigmoid linear unit.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Silu = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .doc = "self * sigmoid(self), elementwise; floating dtypes.",
};

} // namespace cgc::ir
