// aten.log2: logarithm to base two.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Log2 = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "log2(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
