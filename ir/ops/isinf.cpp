// aten.isinf: test for infinity.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::IsInf = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryBool,
    .aten = "copy aten::isinf",
    .doc = "Whether an element is infinite; bool.",
};

} // namespace cgc::ir
