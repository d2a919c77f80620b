// aten.argmax: index of the maximum.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (self.dtype == DType::Bool)
    return rules::mismatch("self", "of a numeric dtype", self);
  llvm::SmallVector<bool, 6> reduced(self.rank(), args.isNone("dim"));
  if (!args.isNone("dim")) {
    CGC_ASSIGN_OR_RETURN(int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
    if (self.rank() > 0)
      reduced[dim] = true;
  }
  for (int64_t d = 0; d < self.rank(); ++d)
    if (reduced[d] && self.sizes[d] == 0)
      return rules::mismatch("self", "nonempty in every reduced dimension", self);
  return rules::addDense(results, DType::I64,
                         rules::reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

} // namespace

const OpDef defs::Argmax = {
    .schema = "(Tensor self, int? dim=none, bool keepdim=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .doc = "The index (i64) of the first largest element along dim, or in the flattened tensor "
           "without dim.",
};

} // namespace cgc::ir
