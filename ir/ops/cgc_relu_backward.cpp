// cgc.relu_backward: the gradient of aten.relu.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcReluBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &result = args.tensor("result");
  if (!isFloating(result.dtype))
    return rules::mismatch("result", "of a floating dtype", result);
  CGC_TRY(rules::sameDType(args, "result", {"grad_output"}));
  return rules::pointwiseResult(args, {"grad_output", "result"}, results);
}

Result<Values> defineCgcReluBackward(OpBuilder &b) {
  Value *isZero = b.call(OpKind::Le, {b.arg("result"), 0});
  return Values{gradient::unless(b, isZero, b.input("grad_output"))};
}

} // namespace

const OpDef defs::CgcReluBackward = {
    .schema = "(Tensor grad_output, Tensor result) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferCgcReluBackward,
    .aten = "aten::threshold_backward.grad_input(..., 0)",
    .decompose = defineCgcReluBackward,
    .doc = "grad_output where result, relu's, is above 0 or NaN, else 0; floating dtypes.",
};

} // namespace cgc::ir
