// aten.remainder: remainder with the sign of the divisor.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  return rules::pointwiseResult(args, {"self", "other"}, results, /*allowBool=*/false);
}

} // namespace

const OpDef defs::Remainder = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = infer,
    .evaluate = host::remainder,
    .aten = "aten::remainder.Tensor_out",
    .doc = "self - other * floor(self / other), as Python's %, broadcast, dtypes promoted.",
};

} // namespace cgc::ir
