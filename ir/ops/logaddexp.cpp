// aten.logaddexp: logarithm of a sum of exponentials.
#include "ir/gradient.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferLogAddExp(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(const TensorType type, rules::pointwise(args, {"self", "other"}));
  if (!isFloating(type.dtype))
    return rules::mismatch("self", "of a floating dtype after promotion", args.tensor("self"));
  return rules::addDense(results, type.dtype, type.sizes);
}

Status backwardLogAddExp(GradientBuilder &b) {
  for (llvm::StringRef name : {"self", "other"})
    if (b.needs(name))
      b.set(name, b.mul(b.grad(), b.call(OpKind::Exp, {b.sub(b.arg(name), b.result())})));
  return Status::ok();
}

/// From the larger operand, whose exponential does not overflow then. Equal infinities have no
/// difference.
Result<Values> defineLogAddExp(OpBuilder &b) {
  const DType dtype = b.result()->tensor().dtype;
  Value *self = b.to(b.input("self"), dtype), *other = b.to(b.input("other"), dtype);
  Value *isInfinite = b.call(OpKind::LogicalAnd,
                             {b.call(OpKind::Eq, {self, other}), b.call(OpKind::IsInf, {self})});
  Value *distance = b.call(OpKind::Abs, {b.sub(self, other)});
  Value *rest = b.call(OpKind::Log1p, {b.call(OpKind::Exp, {b.neg(distance)})});
  Value *sum = b.add(b.call(OpKind::Maximum, {self, other}), rest);
  return Values{b.call(OpKind::Where, {isInfinite, self, sum})};
}

} // namespace

const OpDef defs::LogAddExp = {
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferLogAddExp,
    .gradient = backwardLogAddExp,
    .decompose = defineLogAddExp,
    .doc = "The logarithm of exp(self) + exp(other), broadcast, dtypes promoted; floating.",
};

} // namespace cgc::ir
