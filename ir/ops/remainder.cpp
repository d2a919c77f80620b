// aten.remainder: remainder with the sign of the divisor.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferRemainder(const InferArgs &args, rules::Results &results) {
  return rules::pointwiseResult(args, {"self", "other"}, results, /*allowBool=*/false);
}

} // namespace

const OpDef defs::Remainder = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferRemainder,
    .evaluate = host::remainder,
    .aten = "aten::remainder.Tensor_out",
    .gradient = [](GradientBuilder &b) -> Status {
      b.set("self", b.grad());
      if (b.needs("other"))
        b.set("other", b.neg(b.mul(b.grad(),
                                   b.call(OpKind::Div, {b.arg("self"), b.arg("other"), "floor"}))));
      return Status::ok();
    },
    .doc = "self - other * floor(self / other), as Python's %, broadcast, dtypes promoted.",
};

} // namespace cgc::ir
