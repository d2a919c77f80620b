// aten.div: quotient.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferDiv(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(TensorType type, rules::pointwise(args, {"self", "other"}));
  if (args.isNone("rounding_mode")) {
    bool floating = isFloating(type.dtype);
    return rules::addDense(results, floating ? type.dtype : DType::F32, type.sizes);
  }
  llvm::StringRef mode = args.str("rounding_mode");
  if (mode != "trunc" && mode != "floor")
    return rules::refuse("expected 'rounding_mode' to be none, \"trunc\" or \"floor\", got \"" +
                         mode + "\"");
  return rules::pointwiseResult(args, {"self", "other"}, results, /*allowBool=*/false);
}

} // namespace

const OpDef defs::Div = {
    .schema = "(Tensor|number self, Tensor|number other, str? rounding_mode=none) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferDiv,
    .evaluate = host::div,
    .aten = "aten::div.out_mode",
    .gradient =
        [](GradientBuilder &b) {
          if (!b.arg("rounding_mode").isNone())
            return gradient::none(b);
          if (b.needs("self"))
            b.set("self", b.div(b.grad(), b.arg("other")));
          if (b.needs("other")) {
            Value *derivative = b.div(b.result(), b.arg("other"));
            b.set("other", b.mul(b.neg(b.grad()), derivative));
          }
          return Status::ok();
        },
    .doc = "self / other, broadcast. True division (integers give f32) unless rounding_mode is "
           "\"trunc\" or \"floor\", which keep the promoted dtype.",
};

} // namespace cgc::ir
