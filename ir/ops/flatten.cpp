// aten.flatten: merges a range of dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status inferFlatten(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t first,
                       rules::wrapDim("start_dim", args.integer("start_dim"), self.rank()));
  CGC_ASSIGN_OR_RETURN(int64_t last,
                       rules::wrapDim("end_dim", args.integer("end_dim"), self.rank()));
  if (first > last)
    return rules::refuse("expected 'start_dim' not to come after 'end_dim'");
  if (self.rank() == 0)
    return rules::addReshaped(results, self, {1});
  if (first == last)
    return rules::addAlias(results, self);
  int64_t merged = 1;
  for (int64_t d = first; d <= last; ++d)
    merged *= self.sizes[d];
  Dims sizes(self.sizes.begin(), self.sizes.begin() + first);
  sizes.push_back(merged);
  sizes.append(self.sizes.begin() + last + 1, self.sizes.end());
  return rules::addReshaped(results, self, sizes);
}

} // namespace

const OpDef defs::Flatten = {
    .schema = "(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor",
    .traits = kPure | kView,
    .infer = inferFlatten,
    .batch = batch::view,
    .gradient = gradient::reshaped,
    .doc = "Dimensions start_dim to end_dim become one. A view where the strides of self allow it, "
           "else a copy; a 0-d tensor becomes [1].",
};

} // namespace cgc::ir
