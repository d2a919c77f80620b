// aten.cumsum: running sum.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {
namespace {

/// The sum of the gradients from this element on.
Status backwardCumsum(GradientBuilder &b) {
  const Arg &dim = b.arg("dim");
  Value *grad = b.grad();
  if (grad->tensor().rank() > 0) {
    const Arg dims = Arg::List{dim};
    grad = b.call(OpKind::Flip, {grad, dims});
    grad = b.call(OpKind::Flip, {b.call(OpKind::Cumsum, {grad, dim}), dims});
  }
  b.set("self", grad);
  return Status::ok();
}

} // namespace

const OpDef defs::Cumsum = {
    .schema = "(Tensor self, int dim, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::accumulated,
    .batch = batch::otherDims,
    .gradient = backwardCumsum,
    .doc = "The sum of all elements up to and including this one along dim. Integers and bools "
           "give i64 unless dtype is given.",
};

} // namespace cgc::ir
