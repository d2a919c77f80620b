// aten.isnan: test for NaN.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::IsNan = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryBool,
    .aten = "aten::ne.Tensor_out(self, self)",
    .doc = "Whether an element is NaN; bool.",
};

} // namespace cgc::ir
