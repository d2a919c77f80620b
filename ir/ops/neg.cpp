// aten.neg: negation.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Neg = {
    .schema = "(Tensor|number self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryKeep,
    .evaluate = host::neg,
    .doc = "-self, elementwise; same dtype, which is not bool.",
};

} // namespace cgc::ir
