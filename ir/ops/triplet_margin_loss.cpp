// aten.triplet_margin_loss: the triplet margin loss.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferTripletMarginLoss(const InferArgs &args, rules::Results &results) {
  const TensorType &anchor = args.tensor("anchor");
  if (!isFloating(anchor.dtype))
    return rules::mismatch("anchor", "of a floating dtype", anchor);
  CGC_TRY(rules::sameDType(args, "anchor", {"positive", "negative"}));
  for (llvm::StringRef name : {"positive", "negative"})
    if (args.tensor(name).rank() != anchor.rank() || anchor.rank() == 0)
      return rules::refuse("expected tensors of one rank, with dimensions");
  CGC_ASSIGN_OR_RETURN(const TensorType all,
                       rules::pointwise(args, {"anchor", "positive", "negative"}));
  return rules::reducedLoss(args, all.dtype, llvm::ArrayRef(all.sizes).drop_back(), results);
}

Result<Values> defineTripletMarginLoss(OpBuilder &b) {
  const auto distance = [&](llvm::StringRef x, llvm::StringRef y) {
    return b.call(OpKind::PairwiseDistance, {b.arg(x), b.arg(y), b.arg("p"), b.arg("eps")});
  };
  Value *near = distance("anchor", "positive"), *far = distance("anchor", "negative");
  if (b.args().boolean("swap"))
    far = b.call(OpKind::Minimum, {far, distance("positive", "negative")});
  Value *difference = b.sub(b.add(near, b.arg("margin")), far);
  return rules::reduced(b, b.call(OpKind::ClampMin, {difference, 0.0}));
}

} // namespace

const OpDef defs::TripletMarginLoss = {
    .schema =
        "(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, float "
        "eps=1e-06, bool swap=false, int reduction=1) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferTripletMarginLoss,
    .decompose = defineTripletMarginLoss,
    .doc =
        "max(0, margin + d(anchor, positive) - d(anchor, negative)), reduced, of the distances of "
        "pairwise_distance; with swap the second is that of positive and negative if it is "
        "smaller.",
};

} // namespace cgc::ir
