// aten.logical_and: logic.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::LogicalAnd = {
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::compareTensors,
    .doc = "Whether both elements are nonzero, broadcast; bool.",
};

} // namespace cgc::ir
