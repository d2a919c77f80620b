// class_loss_rules: the losses of classes, as in torch.nn.functional.cross_entropy.
#include "ir/ops/class_loss_rules.h"

#include "ir/ops/loss_rules.h"

namespace cgc::ir {

int64_t rules::classDim(const TensorType &scores) {
  return scores.rank() == 1 ? 0 : 1;
}

namespace {

using rules::classDim;

/// `values` with each class's element multiplied by its weight.
Value *weighted(OpBuilder &b, Value *values) {
  Value *weight = b.input("weight");
  if (!weight)
    return values;
  Dims sizes(values->tensor().sizes.size(), 1);
  sizes[classDim(values->tensor())] = weight->tensor().numElements();
  return b.mul(values, b.reshape(weight, sizes));
}

Value *sumOfClasses(OpBuilder &b, Value *values) {
  return b.sum(values, {classDim(values->tensor())}, /*keepDim=*/false);
}

} // namespace

Status rules::classLoss(const InferArgs &args, Results &results, bool takesProbabilities) {
  const TensorType &self = args.tensor("self"), &target = args.tensor("target");
  if (!isFloating(self.dtype) || self.rank() == 0)
    return mismatch("self", "[C], [N, C] or [N, C, ...] of a floating dtype", self);
  const int64_t dim = classDim(self);
  Dims rows = self.sizes;
  rows.erase(rows.begin() + dim);
  if (isFloating(target.dtype)) {
    if (!takesProbabilities)
      return mismatch("target", "of dtype i64", target);
    CGC_TRY(sameDType(args, "self", {"target"}));
    if (target.sizes != self.sizes)
      return mismatch("target", toString(self.sizes) + ", as 'self'", target);
  } else if (target.dtype != DType::I64 || target.sizes != rows) {
    return mismatch("target", "i64" + toString(rows) + ", the classes of the rows", target);
  }
  CGC_TRY(sameDType(args, "self", {"weight"}));
  if (!args.isNone("weight") && args.tensor("weight").sizes != Dims{self.sizes[dim]})
    return mismatch("weight", "[" + llvm::Twine(self.sizes[dim]) + "]", args.tensor("weight"));
  return reducedLoss(args, self.dtype, rows, results);
}

Result<Values> rules::indexLoss(OpBuilder &b, Value *logProbabilities, double smoothing) {
  Value *weight = b.input("weight"), *target = b.input("target");
  const int64_t dim = classDim(logProbabilities->tensor());
  const DType dtype = logProbabilities->tensor().dtype;
  Value *counts = b.call(OpKind::Ne, {target, b.arg("ignore_index")});
  Value *classes = b.call(OpKind::Where, {counts, target, 0});
  Value *index = b.call(OpKind::Unsqueeze, {classes, dim});
  Value *picked = b.call(OpKind::Gather, {logProbabilities, dim, index});
  Value *losses = b.neg(b.call(OpKind::Squeeze, {picked, Arg::ints(Dims{dim})}));
  Value *weights = nullptr;
  if (weight) {
    Value *own = b.call(OpKind::Index, {weight, Arg::List{classes}});
    weights = b.call(OpKind::Where, {counts, own, 0.0});
    losses = b.mul(losses, own);
  }
  if (smoothing != 0) {
    const int64_t count = logProbabilities->tensor().sizes[dim];
    Value *mean = weight ? b.div(sumOfClasses(b, weighted(b, logProbabilities)), count)
                         : b.call(OpKind::Mean, {logProbabilities, Arg::ints(Dims{dim})});
    Value *ofTarget = b.mul(losses, 1 - smoothing);
    losses = b.sub(ofTarget, b.mul(mean, smoothing));
  }
  losses = b.call(OpKind::Where, {counts, losses, 0.0});
  if (b.args().integer("reduction") != kMeanReduction)
    return reduced(b, losses);
  // No kernel sums bools or integers.
  Value *count = b.call(OpKind::Sum, {weights ? weights : b.to(counts, dtype)});
  return Values{b.div(b.call(OpKind::Sum, {losses}), count)};
}

Result<Values> rules::probabilityLoss(OpBuilder &b, Value *logProbabilities, double smoothing) {
  Value *target = b.input("target");
  const TensorType scores = logProbabilities->tensor();
  const int64_t count = scores.sizes[classDim(scores)];
  if (smoothing != 0)
    target = b.add(b.mul(target, 1 - smoothing), smoothing / static_cast<double>(count));
  Value *losses = b.neg(sumOfClasses(b, weighted(b, b.mul(logProbabilities, target))));
  if (b.args().integer("reduction") != kMeanReduction)
    return reduced(b, losses);
  const int64_t rows = losses->tensor().numElements();
  return Values{b.div(b.call(OpKind::Sum, {losses}), rows)};
}

} // namespace cgc::ir
