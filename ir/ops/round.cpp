// aten.round: rounding to nearest.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Round = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryKeep,
    .evaluate = host::round,
    .gradient = gradient::none,
    .doc = "The nearest integer, the even one of two, elementwise; same dtype, which is not bool.",
};

} // namespace cgc::ir
