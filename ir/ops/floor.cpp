// aten.floor: rounding down.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Floor = {
    .schema = "(Tensor|number self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryKeep,
    .evaluate = host::floor,
    .gradient = gradient::none,
    .doc =
        "The greatest integer that is not above self, elementwise; same dtype, which is not bool.",
};

} // namespace cgc::ir
