// aten.ne: not equal.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Ne = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::compare,
    .evaluate = host::ne,
    .aten = "aten::ne.Tensor_out",
    .doc = "self != other, broadcast; bool.",
};

} // namespace cgc::ir
