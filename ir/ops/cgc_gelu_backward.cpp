// cgc.gelu_backward: the gradient of aten.gelu.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

#include <numbers>

namespace cgc::ir {
namespace {

Status inferCgcGeluBackward(const InferArgs &args, rules::Results &results) {
  llvm::StringRef approximate = args.str("approximate");
  if (approximate != "none" && approximate != "tanh")
    return rules::refuse("expected 'approximate' to be \"none\" or \"tanh\", got \"" + approximate +
                         "\"");
  const TensorType &self = args.tensor("self");
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  CGC_TRY(rules::sameDType(args, "self", {"grad_output"}));
  return rules::pointwiseResult(args, {"grad_output", "self"}, results);
}

/// The derivative of x Phi(x), Phi(x) + x phi(x), where Phi is the standard normal distribution and
/// phi its density.
Value *geluDerivative(OpBuilder &b, Value *x) {
  using std::numbers::inv_sqrtpi, std::numbers::sqrt2;
  Value *erf = b.call(OpKind::Erf, {b.mul(x, 1 / sqrt2)});
  Value *distribution = b.mul(b.add(erf, 1.0), 0.5);
  Value *bell = b.call(OpKind::Exp, {b.mul(b.mul(x, x), -0.5)});
  Value *density = b.mul(bell, inv_sqrtpi / sqrt2);
  return b.add(distribution, b.mul(x, density));
}

/// The derivative of x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3).
Value *geluTanhDerivative(OpBuilder &b, Value *x) {
  constexpr double linear = std::numbers::sqrt2 * std::numbers::inv_sqrtpi,
                   cubic = 0.044715 * linear;
  Value *square = b.mul(x, x);
  Value *u = b.mul(x, b.add(b.mul(square, cubic), linear));
  Value *slopeOfU = b.add(b.mul(square, 3 * cubic), linear);
  Value *tanh = b.call(OpKind::Tanh, {u});
  Value *slopeOfTanh = b.call(OpKind::Rsub, {b.mul(tanh, tanh), 1.0});
  Value *slope = b.mul(slopeOfTanh, slopeOfU);
  return b.mul(b.add(b.add(tanh, b.mul(x, slope)), 1.0), 0.5);
}

/// In f32 for 16 bits.
Result<Values> defineCgcGeluBackward(OpBuilder &b) {
  Value *self = b.input("self"), *x = b.widened(self);
  Value *derivative =
      b.args().str("approximate") == "tanh" ? geluTanhDerivative(b, x) : geluDerivative(b, x);
  return Values{b.to(b.mul(derivative, b.arg("grad_output")), self->tensor().dtype)};
}

} // namespace

const OpDef defs::CgcGeluBackward = {
    .schema = "(Tensor grad_output, Tensor self, str approximate=\"none\") -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferCgcGeluBackward,
    .aten = "aten::gelu_backward.grad_input",
    .decompose = defineCgcGeluBackward,
    .doc = "grad_output times the derivative of gelu at self, elementwise; floating dtypes.",
};

} // namespace cgc::ir
