// aten.sort: sort along a dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Sort = {
    .schema =
        "(Tensor self, bool stable=false, int dim=-1, bool descending=false) -> (Tensor, Tensor)",
    .traits = kPure | kReduction,
    .infer = rules::elementsAndIndices,
    .aten = "aten::sort.values_stable",
    .batch = batch::otherDims,
    .gradient = gradient::picked,
    .doc = "Two results: the elements in order along dim, and their indices (i64). With stable, "
           "equal elements keep the order of self.",
};

} // namespace cgc::ir
