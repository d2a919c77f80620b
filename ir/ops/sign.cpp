// aten.sign: sign.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Sign = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryAny,
    .gradient = gradient::none,
    .doc = "-1, 0 or 1, elementwise; same dtype.",
};

} // namespace cgc::ir
