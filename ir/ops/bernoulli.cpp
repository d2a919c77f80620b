// aten.bernoulli: random zeros and ones.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferBernoulli(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (args.isNone("p") && !isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  if (!args.isNone("p") && !(args.number("p") >= 0 && args.number("p") <= 1))
    return rules::refuse("expected 'p' to be in [0, 1]");
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::Bernoulli = {
    .schema = "(Tensor self, float? p=none) -> Tensor",
    .traits = kOpaque,
    .infer = inferBernoulli,
    .doc = "1 with probability p or, without p, with the probability that self has there, else 0; "
           "fresh in each run; the dtype of self. `random-numbers` computes it.",
};

} // namespace cgc::ir
