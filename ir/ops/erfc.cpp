// aten.erfc: complementary error function.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Erfc = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryToFloat,
    .doc = "1 - erf(self), elementwise; integers and bools give f32.",
};

} // namespace cgc::ir
