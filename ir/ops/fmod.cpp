// aten.fmod: remainder of the truncated quotient.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferFmod(const InferArgs &args, rules::Results &results) {
  return rules::pointwiseResult(args, {"self", "other"}, results, /*allowBool=*/false);
}

} // namespace

const OpDef defs::Fmod = {
    .schema = "(Tensor self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferFmod,
    .aten = "aten::fmod.Tensor_out",
    .gradient = [](GradientBuilder &b) -> Status {
      b.set("self", b.grad());
      if (b.needs("other"))
        b.set("other", b.neg(b.mul(b.grad(),
                                   b.call(OpKind::Div, {b.arg("self"), b.arg("other"), "trunc"}))));
      return Status::ok();
    },
    .doc = "self - other * trunc(self / other), with the sign of self, broadcast, dtypes promoted.",
};

} // namespace cgc::ir
