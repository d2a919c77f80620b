// aten.addcmul: scaled product added.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferAddcmul(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(TensorType type, rules::pointwise(args, {"self", "tensor1", "tensor2"}));
  if (!isFloating(type.dtype))
    return rules::refuse("expected a floating operand, got " + std::string(dtypeName(type.dtype)));
  return rules::addDense(results, type.dtype, type.sizes);
}

} // namespace

const OpDef defs::Addcmul = {
    .schema = "(Tensor self, Tensor tensor1, Tensor tensor2, number value=1) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferAddcmul,
    .gradient = [](GradientBuilder &b) -> Status {
      b.set("self", b.grad());
      Value *grad = gradient::scaled(b, b.grad(), b.number("value"));
      if (b.needs("tensor1"))
        b.set("tensor1", b.mul(grad, b.arg("tensor2")));
      if (b.needs("tensor2"))
        b.set("tensor2", b.mul(grad, b.arg("tensor1")));
      return Status::ok();
    },
    .doc = "self + value * tensor1 * tensor2, broadcast, dtypes promoted; a floating result.",
};

} // namespace cgc::ir
