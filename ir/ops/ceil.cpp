// aten.ceil: rounding up.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Ceil = {
    .schema = "(Tensor|number self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryKeep,
    .evaluate = host::ceil,
    .gradient = gradient::none,
    .doc = "The least integer that is not below self, elementwise; same dtype, which is not bool.",
};

} // namespace cgc::ir
