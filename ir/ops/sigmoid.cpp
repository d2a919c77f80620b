// aten.sigmoid: logistic function.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Sigmoid = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "1 / (1 + exp(-self)), elementwise; integers give f32.",
};

} // namespace cgc::ir
