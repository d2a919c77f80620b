// aten.std: standard deviation over dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Std = {
    .schema =
        "(Tensor self, int[]? dim=none, number? correction=none, bool keepdim=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::floatingReduction,
    .aten = "aten::std.correction_out",
    .batch = batch::reduction,
    .gradient =
        [](GradientBuilder &b) {
          Value *derivative = b.div(b.grad(), b.mul(b.result(), 2.0));
          return gradient::variance(
              b, gradient::unless(b, b.call(OpKind::Eq, {b.result(), 0}), derivative));
        },
    .doc = "The standard deviation over the listed dimensions, or over all if there are none. "
           "correction, 1 if "
           "it is none, is subtracted from the number of elements. Floating dtypes.",
};

} // namespace cgc::ir
