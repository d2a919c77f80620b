// aten.logical_not: negation.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::LogicalNot = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryBool,
    .doc = "Whether an element is zero; bool.",
};

} // namespace cgc::ir
