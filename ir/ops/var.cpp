// aten.var: variance over dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Var = {
    .schema =
        "(Tensor self, int[]? dim=none, number? correction=none, bool keepdim=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::floatingReduction,
    .aten = "aten::var.correction_out",
    .batch = batch::reduction,
    .gradient = [](GradientBuilder &b) { return gradient::variance(b, b.grad()); },
    .doc =
        "The variance over the listed dimensions, or over all if there are none. correction, 1 if "
        "it is none, is subtracted from the number of elements. Floating dtypes.",
};

} // namespace cgc::ir
