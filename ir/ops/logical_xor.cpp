// aten.logical_xor: logic.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::LogicalXor = {
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::compareTensors,
    .doc = "Whether exactly one of the elements is nonzero, broadcast; bool.",
};

} // namespace cgc::ir
