// aten.triu: upper triangle.
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Triu = {
    .schema = "(Tensor self, int diagonal=0) -> Tensor",
    .traits = kPure | kMove,
    .infer = rules::matrices,
    .doc = "self [..., M, N] with zeros below this diagonal.",
};

} // namespace cgc::ir
