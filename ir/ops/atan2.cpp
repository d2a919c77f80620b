// aten.atan2: angle of a point.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferAtan2(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(TensorType type, rules::pointwise(args, {"self", "other"}));
  return rules::addDense(results, isFloating(type.dtype) ? type.dtype : DType::F32, type.sizes);
}

} // namespace

const OpDef defs::Atan2 = {
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferAtan2,
    .gradient = [](GradientBuilder &b) -> Status {
      const DType dtype = b.result()->tensor().dtype;
      Value *self = b.to(b.input("self"), dtype), *other = b.to(b.input("other"), dtype);
      Value *selfSquared = b.mul(self, self);
      Value *grad = b.div(b.grad(), b.add(selfSquared, b.mul(other, other)));
      b.set("self", b.mul(grad, other));
      b.set("other", b.neg(b.mul(grad, self)));
      return Status::ok();
    },
    .doc = "The angle of the point (other, self), broadcast, dtypes promoted; integers give f32.",
};

} // namespace cgc::ir
