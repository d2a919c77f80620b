// aten.frac: fractional part.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Frac = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .decompose = [](OpBuilder &b) -> Result<Values> {
      return Values{b.sub(b.arg("self"), b.call(OpKind::Trunc, {b.arg("self")}))};
    },
    .doc = "self minus self rounded toward 0, elementwise; floating dtypes.",
};

} // namespace cgc::ir
