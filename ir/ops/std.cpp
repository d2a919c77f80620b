// aten.std: standard deviation over dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Std = {
    .schema =
        "(Tensor self, int[]? dim=none, number? correction=none, bool keepdim=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::floatingReduction,
    .aten = "aten::std.correction_out",
    .batch = batch::reduction,
    .doc = "The standard deviation over the listed dimensions, or over all if there are none. "
           "correction, 1 if "
           "it is none, is subtracted from the number of elements. Floating dtypes.",
};

} // namespace cgc::ir
