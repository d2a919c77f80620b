// aten.all: whether all elements are nonzero.
#include "ir/ops/batch_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::All = {
    .schema = "(Tensor self, int[]? dim=none, bool keepdim=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::truth,
    .aten = "aten::all.dims_out",
    .batch = batch::reduction,
    .doc = "Whether all elements over the listed dimensions are nonzero, or all elements without "
           "dim; over an empty list, whether each element is. bool, or u8 for u8.",
};

} // namespace cgc::ir
