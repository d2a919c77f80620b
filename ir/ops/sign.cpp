// aten.sign: sign.
#include "ir/op_builder.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Result<Values> defineSign(OpBuilder &b) {
  Value *self = b.input("self");
  const DType dtype = self->tensor().dtype;
  if (dtype == DType::Bool)
    return Values{b.call(OpKind::Clone, {self})};
  return Values{b.sub(b.to(b.call(OpKind::Gt, {self, 0}), dtype),
                      b.to(b.call(OpKind::Lt, {self, 0}), dtype))};
}

} // namespace

const OpDef defs::Sign = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryAny,
    .gradient = gradient::none,
    .decompose = defineSign,
    .doc = "-1, 0 or 1, elementwise; same dtype.",
};

} // namespace cgc::ir
