// aten.xlogy: product with a logarithm.
#include "ir/gradient.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferXlogy(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(const TensorType type, rules::pointwise(args, {"self", "other"}));
  return rules::addDense(results, isFloating(type.dtype) ? type.dtype : DType::F32, type.sizes);
}

/// 0 for self where it is 0 and other is not positive.
Status backwardXlogy(GradientBuilder &b) {
  const DType dtype = b.result()->tensor().dtype;
  if (b.needs("self")) {
    Value *product = b.call(OpKind::Xlogy, {b.grad(), b.arg("other")}); // 0 for a gradient of 0.
    Value *isOutside = b.call(OpKind::LogicalAnd, {b.call(OpKind::Eq, {b.arg("self"), 0.0}),
                                                   b.call(OpKind::Le, {b.arg("other"), 0.0})});
    b.set("self", b.call(OpKind::Where, {isOutside, 0.0, product}));
  }
  if (b.needs("other"))
    b.set("other", b.div(b.mul(b.grad(), b.arg("self")), b.to(b.input("other"), dtype)));
  return Status::ok();
}

Result<Values> defineXlogy(OpBuilder &b) {
  const DType dtype = b.result()->tensor().dtype;
  Value *self = b.to(b.input("self"), dtype), *other = b.to(b.input("other"), dtype);
  // other itself is a NaN then.
  Value *isNan = b.call(OpKind::IsNan, {other}), *isZero = b.call(OpKind::Eq, {self, 0});
  Value *product = b.mul(self, b.call(OpKind::Log, {other}));
  return Values{
      b.call(OpKind::Where, {isNan, other, b.call(OpKind::Where, {isZero, 0.0, product})})};
}

} // namespace

const OpDef defs::Xlogy = {
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferXlogy,
    .gradient = backwardXlogy,
    .decompose = defineXlogy,
    .doc = "self * log(other), and 0 where self is 0 and other is not NaN, broadcast, dtypes "
           "promoted; integers give f32.",
};

} // namespace cgc::ir
