// aten.celu: the continuously differentiable exponential linear unit.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Result<Values> defineCelu(OpBuilder &b) {
  const double alpha = b.number("alpha");
  if (alpha == 0)
    return rules::refuse("expected 'alpha' not to be 0");
  return Values{b.call(OpKind::Elu, {b.arg("self"), alpha, 1.0, 1 / alpha})};
}

} // namespace

const OpDef defs::Celu = {
    .schema = "(Tensor self, number alpha=1.0) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .decompose = defineCelu,
    .doc = "elu that is smooth for every alpha, elementwise; floating dtypes.",
};

} // namespace cgc::ir
