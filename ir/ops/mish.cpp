// aten.mish: mish.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Mish = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .doc = "self * tanh(softplus(self)), elementwise; floating dtypes.",
};

} // namespace cgc::ir
