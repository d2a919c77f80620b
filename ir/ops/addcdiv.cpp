// aten.addcdiv: scaled quotient added.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferAddcdiv(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(TensorType type, rules::pointwise(args, {"self", "tensor1", "tensor2"}));
  if (!isFloating(type.dtype))
    return rules::refuse("expected a floating operand, got " + std::string(dtypeName(type.dtype)));
  if (!isFloating(args.tensor("tensor1").dtype) && !isFloating(args.tensor("tensor2").dtype))
    return rules::mismatch("tensor2", "floating, or 'tensor1'", args.tensor("tensor2"));
  return rules::addDense(results, type.dtype, type.sizes);
}

} // namespace

const OpDef defs::Addcdiv = {
    .schema = "(Tensor self, Tensor tensor1, Tensor tensor2, number value=1) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferAddcdiv,
    .gradient = [](GradientBuilder &b) -> Status {
      b.set("self", b.grad());
      Value *grad = b.div(gradient::scaled(b, b.grad(), b.number("value")), b.arg("tensor2"));
      b.set("tensor1", grad);
      if (b.needs("tensor2"))
        b.set("tensor2", b.neg(b.mul(grad, b.div(b.arg("tensor1"), b.arg("tensor2")))));
      return Status::ok();
    },
    .doc = "self + value * tensor1 / tensor2, broadcast, dtypes promoted; a floating result.",
};

} // namespace cgc::ir
