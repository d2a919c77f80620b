// aten.logical_or: logic.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::LogicalOr = {
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::compareTensors,
    .doc = "Whether one of the elements is nonzero, broadcast; bool.",
};

} // namespace cgc::ir
