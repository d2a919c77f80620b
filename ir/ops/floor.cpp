// aten.floor: rounding down.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Floor = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryKeep,
    .doc =
        "The greatest integer that is not above self, elementwise; same dtype, which is not bool.",
};

} // namespace cgc::ir
