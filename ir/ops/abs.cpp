// aten.abs: absolute value.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Abs = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryKeep,
    .doc = "|self|, elementwise; same dtype.",
};

} // namespace cgc::ir
