// aten.softshrink: soft shrinkage.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Softshrink = {
    .schema = "(Tensor self, number lambd=0.5) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .doc =
        "self moved toward 0 by lambd, and 0 where it would pass it, elementwise; floating dtypes.",
};

} // namespace cgc::ir
