// aten.mish: mish.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Mish = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .gradient = [](GradientBuilder &b) -> Status {
      const Arg &self = b.arg("self");
      Value *tanh = b.call(OpKind::Tanh, {b.call(OpKind::Softplus, {self})});
      Value *derivative = b.mul(self, b.call(OpKind::Sigmoid, {self}));
      derivative = b.mul(derivative, b.call(OpKind::Rsub, {b.mul(tanh, tanh), 1.0}));
      b.set("self", b.mul(b.grad(), b.add(tanh, derivative)));
      return Status::ok();
    },
    .doc = "self * tanh(softplus(self)), elementwise; floating dtypes.",
};

} // namespace cgc::ir
