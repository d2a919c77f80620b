// aten.bitwise_not: bitwise or logical not.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferBitwiseNot(const InferArgs &args, rules::Results &results) {
  if (!args.isTensor("self"))
    return rules::refuse("expected 'self' to be a tensor, got a number");
  const TensorType &self = args.tensor("self");
  if (isFloating(self.dtype))
    return rules::mismatch("self", "of an integer or bool dtype", self);
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::BitwiseNot = {
    .schema = "(Tensor|number self) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferBitwiseNot,
    .evaluate = host::bitwiseNot,
    .doc = "Flips every bit of an integer, negates a bool.",
};

} // namespace cgc::ir
