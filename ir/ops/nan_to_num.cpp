// aten.nan_to_num: numbers in place of NaN and infinities.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

#include <limits>

namespace cgc::ir {
namespace {

Result<Values> defineNanToNum(OpBuilder &b) {
  Value *self = b.input("self");
  const double largest = rules::largestFinite(self->tensor().dtype);
  const auto number = [&](llvm::StringRef name, double otherwise) {
    return b.arg(name).isNone() ? otherwise : b.number(name);
  };
  Value *y = b.call(OpKind::Where, {b.call(OpKind::IsNan, {self}), number("nan", 0), self});
  const double infinity = std::numeric_limits<double>::infinity();
  y = b.call(OpKind::Where, {b.call(OpKind::Eq, {self, infinity}), number("posinf", largest), y});
  return Values{b.call(OpKind::Where,
                       {b.call(OpKind::Eq, {self, -infinity}), number("neginf", -largest), y})};
}

} // namespace

const OpDef defs::NanToNum = {
    .schema = "(Tensor self, float? nan=none, float? posinf=none, float? neginf=none) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .decompose = defineNanToNum,
    .doc = "self with nan for NaN, or 0; posinf and neginf for the infinities, or the largest and "
           "smallest finite number; floating dtypes.",
};

} // namespace cgc::ir
