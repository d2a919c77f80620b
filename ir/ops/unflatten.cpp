// aten.unflatten: splits one dimension into several.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status inferUnflatten(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
  if (self.rank() == 0 || args.ints("sizes").empty())
    return rules::refuse("expected 'self' to have a dimension and 'sizes' to have an element");
  CGC_ASSIGN_OR_RETURN(Dims parts, rules::inferSize("sizes", args.ints("sizes"), self.sizes[dim]));
  Dims sizes(self.sizes.begin(), self.sizes.begin() + dim);
  sizes.append(parts);
  sizes.append(self.sizes.begin() + dim + 1, self.sizes.end());
  return rules::addReshaped(results, self, sizes);
}

} // namespace

const OpDef defs::Unflatten = {
    .schema = "(Tensor self, int dim, int[] sizes) -> Tensor",
    .traits = kPure | kView,
    .infer = inferUnflatten,
    .batch = batch::view,
    .gradient = gradient::reshaped,
    .doc = "Dimension dim is replaced by the given sizes, whose product must be its size; one may "
           "be -1.",
};

} // namespace cgc::ir
