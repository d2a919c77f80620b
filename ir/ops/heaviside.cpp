// aten.heaviside: step function.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferHeaviside(const InferArgs &args, rules::Results &results) {
  CGC_TRY(rules::sameDType(args, "self", {"values"}));
  return rules::pointwiseResult(args, {"self", "values"}, results);
}

Result<Values> defineHeaviside(OpBuilder &b) {
  Value *self = b.input("self");
  Value *isZero = b.call(OpKind::Eq, {self, 0});
  Value *isPositive = b.to(b.call(OpKind::Gt, {self, 0}), self->tensor().dtype);
  return Values{b.call(OpKind::Where, {isZero, b.arg("values"), isPositive})};
}

} // namespace

const OpDef defs::Heaviside = {
    .schema = "(Tensor self, Tensor values) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferHeaviside,
    .decompose = defineHeaviside,
    .doc = "1 where self is positive, values where it is 0, else 0, broadcast; one dtype.",
};

} // namespace cgc::ir
