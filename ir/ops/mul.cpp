// aten.mul: product.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferMul(const InferArgs &args, rules::Results &results) {
  return rules::pointwiseResult(args, {"self", "other"}, results);
}

} // namespace

const OpDef defs::Mul = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferMul,
    .evaluate = host::mul,
    .gradient =
        [](GradientBuilder &b) {
          if (b.needs("self"))
            b.set("self", b.mul(b.grad(), b.arg("other")));
          if (b.needs("other"))
            b.set("other", b.mul(b.grad(), b.arg("self")));
          return Status::ok();
        },
    .doc = "self * other, broadcast, dtypes promoted.",
};

} // namespace cgc::ir
