// aten.prod: product along a dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
  llvm::SmallVector<bool, 6> reduced(self.rank(), false);
  if (self.rank() > 0)
    reduced[dim] = true;
  return rules::addDense(results, rules::accumulationDType(args),
                         rules::reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

} // namespace

const OpDef defs::Prod = {
    .schema = "(Tensor self, int dim, bool keepdim=false, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .aten = "aten::prod.int_out",
    .batch = batch::reduction,
    .doc = "The product along dim. Integers and bools give i64 unless dtype is given.",
};

} // namespace cgc::ir
