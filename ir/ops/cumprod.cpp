// aten.cumprod: running product.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {
namespace {

/// The gradient of an element is the sum over all products that it is in, each without it. They are
/// formed without a division by the element, which may be 0.
Status backwardCumprod(GradientBuilder &b) {
  Value *self = b.to(b.input("self"), b.result()->tensor().dtype), *grad = b.grad();
  if (self->tensor().rank() == 0) {
    b.set("self", grad);
    return Status::ok();
  }
  const auto asLast = [&](Value *value) {
    return b.call(OpKind::Transpose, {value, b.arg("dim"), -1});
  };
  self = asLast(self);
  Value *isSame = gradient::identityMatrix(b, self->tensor().sizes.back());
  // Row i has the elements without element i, and then their products.
  Value *others = b.call(OpKind::Where, {isSame, 1.0, b.call(OpKind::Unsqueeze, {self, -2})});
  others = b.call(OpKind::Triu, {b.call(OpKind::Cumprod, {others, -1})});
  Value *shares = b.mul(b.call(OpKind::Unsqueeze, {asLast(grad), -2}), others);
  b.set("self", asLast(b.sum(shares, {-1}, false)));
  return Status::ok();
}

} // namespace

const OpDef defs::Cumprod = {
    .schema = "(Tensor self, int dim, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::accumulated,
    .batch = batch::otherDims,
    .gradient = backwardCumprod,
    .doc = "The product of all elements up to and including this one along dim. Integers and bools "
           "give i64 unless dtype is given.",
};

} // namespace cgc::ir
