// aten.trunc: rounding toward zero.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Trunc = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryKeep,
    .evaluate = host::trunc,
    .gradient = gradient::none,
    .doc = "self without its fraction, elementwise; same dtype, which is not bool.",
};

} // namespace cgc::ir
