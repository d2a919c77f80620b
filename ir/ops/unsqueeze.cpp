// aten.unsqueeze: inserts a dimension of size 1.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferUnsqueeze(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank() + 1));
  Dims sizes = self.sizes, strides = self.strides;
  int64_t stride = dim < self.rank() ? sizes[dim] * strides[dim] : 1;
  sizes.insert(sizes.begin() + dim, 1);
  strides.insert(strides.begin() + dim, stride);
  return rules::addView(results, self, sizes, strides);
}

} // namespace

const OpDef defs::Unsqueeze = {
    .schema = "(Tensor self, int dim) -> Tensor",
    .traits = kPure | kView,
    .infer = inferUnsqueeze,
    .batch = batch::view,
    .gradient = gradient::reshaped,
    .doc = "self with a dimension of size 1 inserted before dim; -1 appends.",
};

} // namespace cgc::ir
