// aten.gt: greater.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Gt = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::compare,
    .evaluate = host::gt,
    .aten = "aten::gt.Tensor_out",
    .doc = "self > other, broadcast; bool.",
};

} // namespace cgc::ir
