// aten.cummax: largest element so far.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Cummax = {
    .schema = "(Tensor self, int dim) -> (Tensor, Tensor)",
    .traits = kPure | kReduction,
    .infer = rules::elementsAndIndices,
    .aten = "copy aten::cummax",
    .batch = batch::otherDims,
    .gradient = gradient::extremesSoFar,
    .doc =
        "Two results: the largest of all elements up to and including this one along dim, and its "
        "index (i64), the last among equal ones.",
};

} // namespace cgc::ir
