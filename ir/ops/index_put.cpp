// aten.index_put: replacement of indexed elements.
#include "ir/ops/gradient_rules.h"
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

Status inferIndexPut(const InferArgs &args, rules::Results &results) {
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

/// The mask of an index_put as a condition on 'self': with a dimension of 1 for each that it lacks.
Value *maskOf(GradientBuilder &b) {
  Value *mask = b.arg("indices").list().front().value();
  Dims sizes = mask->tensor().sizes;
  sizes.resize(b.result()->tensor().sizes.size(), 1);
  return b.reshape(mask, sizes);
}

Status backwardIndexPut(GradientBuilder &b) {
  const Value *first = nullptr;
  b.arg("indices").forEachValue([&](const Value *value) { first = first ? first : value; });
  const bool masked = first->tensor().dtype == DType::Bool;
  if (b.needs("self")) {
    if (b.arg("accumulate").as<bool>())
      b.set("self", b.grad());
    else if (masked)
      b.set("self", gradient::unless(b, maskOf(b), b.grad()));
    else
      b.set("self",
            b.call(OpKind::IndexPut, {b.grad(), b.arg("indices"), b.zerosLike(b.input("values"))}));
  }
  if (!b.needs("values"))
    return Status::ok();
  if (masked) // One element for all places.
    b.set("values", b.where(maskOf(b), b.grad()));
  else
    b.set("values", b.call(OpKind::Index, {b.grad(), b.arg("indices")}));
  return Status::ok();
}

} // namespace

const OpDef defs::IndexPut = {
    .schema = "(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=false) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferIndexPut,
    .gradient = backwardIndexPut,
    .doc = "self with the elements that index picks for these indices replaced by values, which "
           "broadcast to them, or with values added. A mask (bool) of leading dimensions may be "
           "the only index if values is one element, which replaces.",
};

} // namespace cgc::ir
