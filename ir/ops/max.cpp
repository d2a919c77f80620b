// aten.max: largest element along a dimension, and its index.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Max = {
    .schema = "(Tensor self, int dim, bool keepdim=false) -> (Tensor, Tensor)",
    .traits = kPure | kReduction,
    .infer = rules::extremeAndIndex,
    .aten = "aten::max.dim_max",
    .batch = batch::reduction,
    .gradient = gradient::picked,
    .doc = "Two results: the largest element along dim, and its index (i64).",
};

} // namespace cgc::ir
