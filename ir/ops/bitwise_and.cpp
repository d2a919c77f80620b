// aten.bitwise_and: bitwise or logical and.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::BitwiseAnd = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::bitwise,
    .evaluate = host::bitwiseAnd,
    .aten = "aten::bitwise_and.Tensor_out",
    .doc = "self & other of integers or bools, broadcast, dtypes promoted.",
};

} // namespace cgc::ir
