// aten.bitwise_xor: bitwise exclusive or.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::BitwiseXor = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::bitwise,
    .aten = "aten::bitwise_xor.Tensor_out",
    .doc = "self ^ other, broadcast; integers and bools.",
};

} // namespace cgc::ir
