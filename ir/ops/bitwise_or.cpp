// aten.bitwise_or: bitwise or logical or.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::BitwiseOr = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::bitwise,
    .evaluate = host::bitwiseOr,
    .aten = "aten::bitwise_or.Tensor_out",
    .doc = "self | other of integers or bools, broadcast, dtypes promoted.",
};

} // namespace cgc::ir
