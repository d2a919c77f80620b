// cgc.gelu_backward: the gradient of aten.gelu.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcGeluBackward(const InferArgs &args, rules::Results &results) {
  llvm::StringRef approximate = args.str("approximate");
  if (approximate != "none" && approximate != "tanh")
    return rules::refuse("expected 'approximate' to be \"none\" or \"tanh\", got \"" + approximate +
                         "\"");
  const TensorType &self = args.tensor("self");
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  CGC_TRY(rules::sameDType(args, "self", {"grad_output"}));
  return rules::pointwiseResult(args, {"grad_output", "self"}, results);
}

} // namespace

const OpDef defs::CgcGeluBackward = {
    .schema = "(Tensor grad_output, Tensor self, str approximate=\"none\") -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferCgcGeluBackward,
    .aten = "aten::gelu_backward.grad_input",
    .doc = "grad_output times the derivative of gelu at self, elementwise; floating dtypes.",
};

} // namespace cgc::ir
