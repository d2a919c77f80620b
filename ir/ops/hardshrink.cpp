// aten.hardshrink: hard shrinkage.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Hardshrink = {
    .schema = "(Tensor self, number lambd=0.5) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .doc = "self where its magnitude exceeds lambd, else 0, elementwise; floating dtypes.",
};

} // namespace cgc::ir
