// aten.selu: the scaled exponential linear unit.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

/// The numbers of LibTorch (Klambauer et al., 2017).
Result<Values> defineSelu(OpBuilder &b) {
  constexpr double kAlpha = 1.6732632423543772848170429916717,
                   kScale = 1.0507009873554804934193349852946;
  return Values{b.call(OpKind::Elu, {b.arg("self"), kAlpha, kScale})};
}

} // namespace

const OpDef defs::Selu = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .decompose = defineSelu,
    .doc = "The scaled exponential linear unit, elementwise; floating dtypes.",
};

} // namespace cgc::ir
