// aten.select: one index along one dimension.
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::dimOfSelf(args));
  int64_t index = args.integer("index"), size = self.sizes[dim];
  if (index < -size || index >= size)
    return rules::refuse("expected 'index' to be inside dimension " + llvm::Twine(dim) +
                         " of 'self' " + rules::toString(self.sizes) + ", got " +
                         llvm::Twine(index));
  return rules::addSelected(results, self, dim, index < 0 ? index + size : index);
}

} // namespace

const OpDef defs::Select = {
    .schema = "(Tensor self, int dim, int index) -> Tensor",
    .traits = kPure | kView,
    .infer = infer,
    .doc = "self at this index of dimension dim, which is dropped. A negative index counts from "
           "the end.",
};

} // namespace cgc::ir
