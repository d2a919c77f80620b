// aten.lerp: linear interpolation.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

#include <cmath>

namespace cgc::ir {
namespace {

Status inferLerp(const InferArgs &args, rules::Results &results) {
  if (!isFloating(args.tensor("self").dtype))
    return rules::mismatch("self", "of a floating dtype", args.tensor("self"));
  CGC_TRY(rules::sameDType(args, "self", {"end"}));
  if (args.isTensor("weight"))
    CGC_TRY(rules::sameDType(args, "self", {"weight"}));
  return rules::pointwiseResult(args, {"self", "end", "weight"}, results);
}

/// From the nearer of self and end, as LibTorch does: a weight of 1 gives end exactly.
Result<Values> defineLerp(OpBuilder &b) {
  Value *self = b.input("self"), *end = b.input("end");
  const Arg &weight = b.arg("weight");
  Value *difference = b.sub(end, self);
  const auto fromSelf = [&] { return b.add(self, b.mul(difference, weight)); };
  const auto fromEnd = [&](Arg rest) { return b.sub(end, b.mul(difference, std::move(rest))); };
  if (!weight.isValue()) {
    const double number = *weight.asNumber();
    return Values{std::abs(number) < 0.5 ? fromSelf() : fromEnd(1 - number)};
  }
  Value *isSmall = b.call(OpKind::Lt, {b.call(OpKind::Abs, {weight}), 0.5});
  Value *rest = b.call(OpKind::Rsub, {weight, 1});
  return Values{b.call(OpKind::Where, {isSmall, fromSelf(), fromEnd(rest)})};
}

} // namespace

const OpDef defs::Lerp = {
    .schema = "(Tensor self, Tensor end, Tensor|number weight) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferLerp,
    .decompose = defineLerp,
    .doc = "self + weight * (end - self), broadcast; one floating dtype.",
};

} // namespace cgc::ir
