// aten.isfinite: test for numbers.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::IsFinite = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryBool,
    .aten = "copy aten::isfinite",
    .doc = "Whether an element is neither infinite nor NaN; bool.",
};

} // namespace cgc::ir
