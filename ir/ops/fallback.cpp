// aten.fallback: an ATen op that has no row of its own.
#include "ir/op_def.h"

namespace cgc::ir {

const OpDef defs::Fallback = {
    .schema = "(any[] args) -> Tensor[]",
    .traits = kNoTraits,
    .doc =
        "An ATen op named by the full schema in the node's target. Its one argument is the list of "
        "that op's arguments in order. It has no rule: its result types come from running it in "
        "LibTorch.",
};

} // namespace cgc::ir
