// aten.elu: exponential linear unit.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Elu = {
    .schema = "(Tensor self, number alpha=1, number scale=1, number input_scale=1) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .doc = "scale * self where it is positive, else scale * alpha * (exp(input_scale * self) - 1), "
           "elementwise; floating dtypes.",
};

} // namespace cgc::ir
