// aten.threshold: a value in place of elements up to a threshold.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Threshold = {
    .schema = "(Tensor self, number threshold, number value) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .decompose = [](OpBuilder &b) -> Result<Values> {
      Value *isLow = b.call(OpKind::Le, {b.arg("self"), b.arg("threshold")});
      return Values{b.call(OpKind::MaskedFill, {b.arg("self"), isLow, b.arg("value")})};
    },
    .doc = "value where self is at most threshold, else self, elementwise; floating dtypes.",
};

} // namespace cgc::ir
