// aten.softplus: softplus.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Softplus = {
    .schema = "(Tensor self, number beta=1, number threshold=20) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .doc = "log(1 + exp(beta * self)) / beta, or self where beta * self exceeds threshold, "
           "elementwise; floating dtypes.",
};

} // namespace cgc::ir
