// aten.le: less or equal.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Le = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::compare,
    .evaluate = host::le,
    .aten = "aten::le.Tensor_out",
    .doc = "self <= other, broadcast; bool.",
};

} // namespace cgc::ir
