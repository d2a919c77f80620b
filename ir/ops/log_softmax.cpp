// aten.log_softmax: logarithm of softmax.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {

const OpDef defs::LogSoftmax = {
    .schema = "(Tensor self, int dim, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::softmax,
    .batch = batch::otherDims,
    .gradient = [](GradientBuilder &b) -> Status {
      Value *sum = b.sum(b.grad(), {b.arg("dim").as<int64_t>()}, /*keepDim=*/true);
      b.set("self", b.sub(b.grad(), b.mul(b.call(OpKind::Exp, {b.result()}), sum)));
      return Status::ok();
    },
    .doc =
        "self - log(sum(exp(self))) along dim, after conversion to dtype if it is given; floating "
        "dtypes.",
};

} // namespace cgc::ir
