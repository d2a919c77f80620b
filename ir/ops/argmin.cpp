// aten.argmin: index of the minimum.
#include "ir/ops/batch_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Argmin = {
    .schema = "(Tensor self, int? dim=none, bool keepdim=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::indexOfExtreme,
    .batch = batch::reduction,
    .doc = "The index (i64) of the first smallest element along dim, or in the flattened tensor "
           "without dim.",
};

} // namespace cgc::ir
