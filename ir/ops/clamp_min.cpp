// aten.clamp_min: lower bound.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  return rules::pointwiseResult(args, {"self", "min"}, results, /*allowBool=*/args.isTensor("min"));
}

} // namespace

const OpDef defs::ClampMin = {
    .schema = "(Tensor self, Tensor|number min) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = infer,
    .doc = "max(self, min), broadcast, dtypes promoted.",
};

} // namespace cgc::ir
