// aten.mul: product.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  return rules::pointwiseResult(args, {"self", "other"}, results);
}

} // namespace

const OpDef defs::Mul = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = infer,
    .evaluate = host::mul,
    .doc = "self * other, broadcast, dtypes promoted.",
};

} // namespace cgc::ir
