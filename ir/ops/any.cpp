// aten.any: whether any element is nonzero.
#include "ir/ops/batch_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Any = {
    .schema = "(Tensor self, int[]? dim=none, bool keepdim=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::truth,
    .aten = "aten::any.dims_out",
    .batch = batch::reduction,
    .doc = "Whether any element over the listed dimensions is nonzero, or of all elements "
           "without dim; over an empty list, whether each element is. bool, or u8 for u8.",
};

} // namespace cgc::ir
