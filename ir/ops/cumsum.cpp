// aten.cumsum: running sum.
#include "ir/ops/batch_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_TRY(rules::wrapDim("dim", args.integer("dim"), self.rank()).status());
  const DType dtype = rules::accumulationDType(args);
  if (dtype == DType::Bool)
    return rules::refuse("expected 'dtype' to be numeric, got bool");
  return rules::addDense(results, dtype, self.sizes);
}

} // namespace

const OpDef defs::Cumsum = {
    .schema = "(Tensor self, int dim, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .batch = batch::otherDims,
    .doc = "The sum of all elements up to and including this one along dim. Integers and bools "
           "give i64 unless dtype is given.",
};

} // namespace cgc::ir
