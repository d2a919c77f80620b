// aten.softmax: softmax along one dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Softmax = {
    .schema = "(Tensor self, int dim, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::softmax,
    .batch = batch::otherDims,
    .doc = "exp(self) / sum(exp(self)) along dim, after conversion to dtype if it is given; "
           "floating dtypes.",
};

} // namespace cgc::ir
