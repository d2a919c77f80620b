// aten.log_softmax: logarithm of softmax.
#include "ir/ops/batch_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::LogSoftmax = {
    .schema = "(Tensor self, int dim, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::softmax,
    .aten = "copy aten::log_softmax.int",
    .batch = batch::otherDims,
    .doc =
        "self - log(sum(exp(self))) along dim, after conversion to dtype if it is given; floating "
        "dtypes.",
};

} // namespace cgc::ir
