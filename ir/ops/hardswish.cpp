// aten.hardswish: hard swish.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Hardswish = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .doc = "self * clamp(self + 3, 0, 6) / 6, elementwise; floating dtypes.",
};

} // namespace cgc::ir
