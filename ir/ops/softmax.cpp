// aten.softmax: softmax along one dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::Softmax = {
    .schema = "(Tensor self, int dim, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::softmax,
    .batch = batch::otherDims,
    .gradient = [](GradientBuilder &b) -> Status {
      Value *weighted = b.mul(b.grad(), b.result());
      Value *sum = b.sum(weighted, {b.arg("dim").as<int64_t>()}, /*keepDim=*/true);
      b.set("self", b.sub(weighted, b.mul(b.result(), sum)));
      return Status::ok();
    },
    .doc = "exp(self) / sum(exp(self)) along dim, after conversion to dtype if it is given; "
           "floating dtypes.",
};

} // namespace cgc::ir
