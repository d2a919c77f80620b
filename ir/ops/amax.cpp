// aten.amax: maximum over dimensions.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(auto reduced, rules::listedDims(args, "dim", self.rank()));
  for (int64_t d = 0; d < self.rank(); ++d)
    if (reduced[d] && self.sizes[d] == 0)
      return rules::mismatch("self", "nonempty in every reduced dimension", self);
  return rules::addDense(results, self.dtype,
                         rules::reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

} // namespace

const OpDef defs::Amax = {
    .schema = "(Tensor self, int[] dim=[], bool keepdim=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .doc = "The largest element over the listed dimensions, or over all if there are none; none of "
           "them may have size 0.",
};

} // namespace cgc::ir
