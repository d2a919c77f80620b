// aten.clamp: lower and upper bounds.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  if (args.isNone("min") && args.isNone("max"))
    return rules::refuse("expected 'min' or 'max', got none for both");
  if (!args.isNone("min") && !args.isNone("max") && args.isTensor("min") != args.isTensor("max"))
    return rules::refuse("expected 'min' and 'max' to be both tensors or both numbers");
  return rules::pointwiseResult(args, {"self", "min", "max"}, results, /*allowBool=*/false);
}

} // namespace

const OpDef defs::Clamp = {
    .schema = "(Tensor|number self, Tensor|number? min=none, Tensor|number? max=none) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = infer,
    .evaluate = host::clamp,
    .doc = "min(max(self, min), max), broadcast, dtypes promoted; one bound may be none.",
};

} // namespace cgc::ir
