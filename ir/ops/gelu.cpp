// aten.gelu: Gaussian error linear unit.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferGelu(const InferArgs &args, rules::Results &results) {
  llvm::StringRef approximate = args.str("approximate");
  if (approximate != "none" && approximate != "tanh")
    return rules::refuse("expected 'approximate' to be \"none\" or \"tanh\", got \"" + approximate +
                         "\"");
  return rules::unaryFloating(args, results);
}

} // namespace

const OpDef defs::Gelu = {
    .schema = "(Tensor self, str approximate=\"none\") -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferGelu,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self",
                b.call(OpKind::CgcGeluBackward, {b.grad(), b.arg("self"), b.arg("approximate")}));
          return Status::ok();
        },
    .doc = "self * Phi(self), elementwise, exact or with approximate \"tanh\"; floating dtypes.",
};

} // namespace cgc::ir
