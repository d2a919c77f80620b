// aten.log_sigmoid: the logarithm of the sigmoid.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Result<Values> defineLogSigmoid(OpBuilder &b) {
  return Values{b.neg(b.call(OpKind::Softplus, {b.neg(b.input("self"))}))};
}

} // namespace

const OpDef defs::LogSigmoid = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .decompose = defineLogSigmoid,
    .doc = "log(sigmoid(self)), elementwise; floating dtypes.",
};

} // namespace cgc::ir
