// cgc.quick_gelu: the activation of the first CLIP models.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Result<Values> defineCgcQuickGelu(OpBuilder &b) {
  Value *self = b.input("self");
  return Values{b.mul(self, b.call(OpKind::Sigmoid, {b.mul(self, 1.702)}))};
}

} // namespace

const OpDef defs::CgcQuickGelu = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .gradient = [](GradientBuilder &b) { return gradient::gated(b, 1.702); },
    .decompose = defineCgcQuickGelu,
    .doc = "self * sigmoid(1.702 * self), elementwise; floating dtypes.",
};

} // namespace cgc::ir
