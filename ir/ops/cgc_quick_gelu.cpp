// cgc.quick_gelu: the activation of the first CLIP models.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::QuickGelu = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .doc = "self * sigmoid(1.702 * self), elementwise; floating dtypes.",
};

} // namespace cgc::ir
