// aten.amin: minimum over dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Amin = {
    .schema = "(Tensor self, int[] dim=[], bool keepdim=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::extremes,
    .batch = batch::reduction,
    .gradient = gradient::extremes,
    .doc =
        "The smallest element over the listed dimensions, or over all if there are none; none of "
        "them may have size 0.",
};

} // namespace cgc::ir
