// loss_rules: the type rule and the reduction of losses.
#include "ir/ops/loss_rules.h"

namespace cgc::ir {

Status rules::pairLoss(const InferArgs &args, Results &results) {
  return loss(args, {"self", "target"}, results);
}

Status rules::reducedLoss(const InferArgs &args, DType dtype, llvm::ArrayRef<int64_t> sizes,
                          Results &results) {
  const int64_t reduction = args.integer("reduction");
  if (reduction < kNoReduction || reduction > kSumReduction)
    return mismatch("reduction", "0 (none), 1 (mean) or 2 (sum)", reduction);
  return addDense(results, dtype, reduction == kNoReduction ? sizes : llvm::ArrayRef<int64_t>());
}

Status rules::loss(const InferArgs &args, std::initializer_list<llvm::StringRef> operands,
                   Results &results) {
  const llvm::StringRef first = *operands.begin();
  const TensorType &type = args.tensor(first);
  if (!isFloating(type.dtype))
    return mismatch(first, "of a floating dtype", type);
  CGC_TRY(sameDType(args, first, operands));
  CGC_ASSIGN_OR_RETURN(const TensorType all, pointwise(args, operands));
  return reducedLoss(args, type.dtype, all.sizes, results);
}

Status rules::weightedLoss(const InferArgs &args, llvm::ArrayRef<llvm::StringRef> weights,
                           Results &results) {
  const TensorType &self = args.tensor("self"), &target = args.tensor("target");
  if (target.sizes != self.sizes)
    return mismatch("target", toString(self.sizes) + ", as 'self'", target);
  for (llvm::StringRef name : weights) {
    CGC_TRY(sameDType(args, "self", {name}));
    if (!args.isNone(name) && !broadcastsTo(args.tensor(name).sizes, self.sizes))
      return mismatch(name, "broadcastable to " + toString(self.sizes), args.tensor(name));
  }
  return loss(args, {"self", "target"}, results);
}

Values rules::reduced(OpBuilder &b, Value *losses) {
  switch (b.args().integer("reduction")) {
  case kMeanReduction:
    return {b.call(OpKind::Mean, {losses})};
  case kSumReduction:
    return {b.call(OpKind::Sum, {losses})};
  default:
    return {losses};
  }
}

} // namespace cgc::ir
