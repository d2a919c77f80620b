// aten.pow: power.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(TensorType type, rules::pointwise(args, {"self", "exponent"}));
  if (const int64_t *exponent = args["exponent"].getIf<int64_t>())
    if (*exponent < 0 && !isFloating(type.dtype))
      return rules::mismatch("exponent", "at least 0 for integers", *exponent);
  return rules::pointwiseResult(args, {"self", "exponent"}, results, /*allowBool=*/false);
}

} // namespace

const OpDef defs::Pow = {
    .schema = "(Tensor|number self, Tensor|number exponent) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = infer,
    .evaluate = host::pow,
    .doc = "self to the power of exponent, broadcast, dtypes promoted.",
};

} // namespace cgc::ir
