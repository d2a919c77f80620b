// aten.lt: less.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Lt = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::compare,
    .evaluate = host::lt,
    .aten = "aten::lt.Tensor_out",
    .doc = "self < other, broadcast; bool.",
};

} // namespace cgc::ir
