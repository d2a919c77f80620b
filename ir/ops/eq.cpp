// aten.eq: equal.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Eq = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::compare,
    .evaluate = host::eq,
    .aten = "aten::eq.Tensor_out",
    .doc = "self == other, broadcast; bool.",
};

} // namespace cgc::ir
