// aten.min: smallest element along a dimension, and its index.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Min = {
    .schema = "(Tensor self, int dim, bool keepdim=false) -> (Tensor, Tensor)",
    .traits = kPure | kReduction,
    .infer = rules::extremeAndIndex,
    .aten = "aten::min.dim_min",
    .batch = batch::reduction,
    .gradient = gradient::picked,
    .doc = "Two results: the smallest element along dim, and its index (i64).",
};

} // namespace cgc::ir
