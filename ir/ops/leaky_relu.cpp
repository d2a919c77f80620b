// aten.leaky_relu: leaky rectified linear unit.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::LeakyRelu = {
    .schema = "(Tensor self, number negative_slope=0.01) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .doc = "self where it is positive, else negative_slope * self, elementwise; floating dtypes.",
};

} // namespace cgc::ir
