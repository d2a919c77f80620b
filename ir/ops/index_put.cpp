// aten.index_put: replacement of indexed elements.
#include "ir/ops/index_rules.h"

namespace cgc::ir {
namespace {

/// 'values' is one element, which replaces those where the mask holds.
Status inferMasked(const InferArgs &args, const TensorType &mask, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &values = args.tensor("values");
  if (values.numElements() != 1 || values.rank() > 1 || args["indices"].list().size() != 1)
    return rules::mismatch("values",
                           "one element where 'indices' has a mask: how many elements a mask picks "
                           "depends on data; use masked_fill or where",
                           values);
  if (args.boolean("accumulate"))
    return rules::refuse("expected 'accumulate' to be false where 'indices' has a mask");
  if (mask.rank() == 0 || mask.rank() > self.rank() ||
      llvm::ArrayRef(self.sizes).take_front(mask.rank()) != llvm::ArrayRef(mask.sizes))
    return rules::mismatch("indices",
                           "of the leading sizes of 'self' " + rules::toString(self.sizes), mask);
  return rules::addDense(results, self.dtype, self.sizes);
}

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &values = args.tensor("values");
  CGC_TRY(rules::sameDType(args, "self", {"values"}));
  for (const TensorType *index : args.tensors("indices"))
    if (index->dtype == DType::Bool)
      return inferMasked(args, *index, results);
  CGC_ASSIGN_OR_RETURN(Dims picked, rules::indexedSizes(args));
  if (!rules::broadcastsTo(values.sizes, picked))
    return rules::mismatch(
        "values", "of sizes that broadcast to the indexed elements " + rules::toString(picked),
        values);
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::IndexPut = {
    .schema = "(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=false) -> Tensor",
    .traits = kPure | kMove,
    .infer = infer,
    .doc = "self with the elements that index picks for these indices replaced by values, which "
           "broadcast to them, or with values added. A mask (bool) of leading dimensions may be "
           "the only index if values is one element, which replaces.",
};

} // namespace cgc::ir
