// aten.bitwise_right_shift: arithmetic right shift.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferBitwiseRightShift(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(TensorType type, rules::pointwise(args, {"self", "other"}));
  if (isFloating(type.dtype) || type.dtype == DType::Bool)
    return rules::refuse("expected integer operands, got " + std::string(dtypeName(type.dtype)));
  return rules::addDense(results, type.dtype, type.sizes);
}

} // namespace

const OpDef defs::BitwiseRightShift = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferBitwiseRightShift,
    .aten = "aten::bitwise_right_shift.Tensor_out",
    .doc = "self >> other, broadcast, with copies of the sign bit; integers.",
};

} // namespace cgc::ir
