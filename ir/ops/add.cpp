// aten.add: sum.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferAdd(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(TensorType type, rules::pointwise(args, {"self", "other"}));
  CGC_TRY(rules::checkAlpha(args, type.dtype));
  return rules::addDense(results, type.dtype, type.sizes);
}

} // namespace

const OpDef defs::Add = {
    .schema = "(Tensor|number self, Tensor|number other, number alpha=1) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferAdd,
    .evaluate = host::add,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.grad());
          if (b.needs("other"))
            b.set("other", gradient::scaled(b, b.grad(), b.number("alpha")));
          return Status::ok();
        },
    .doc = "self + alpha * other, broadcast, dtypes promoted.",
};

} // namespace cgc::ir
