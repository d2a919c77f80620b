// aten.log10: logarithm to base ten.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Log10 = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "log10(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
