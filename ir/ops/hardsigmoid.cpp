// aten.hardsigmoid: hard sigmoid.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Hardsigmoid = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .doc = "clamp(self + 3, 0, 6) / 6, elementwise; floating dtypes.",
};

} // namespace cgc::ir
