// aten.pairwise_distance: distances of vectors.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferPairwiseDistance(const InferArgs &args, rules::Results &results) {
  if (!isFloating(args.tensor("x1").dtype))
    return rules::mismatch("x1", "of a floating dtype", args.tensor("x1"));
  CGC_TRY(rules::sameDType(args, "x1", {"x2"}));
  CGC_ASSIGN_OR_RETURN(TensorType all, rules::pointwise(args, {"x1", "x2"}));
  if (args.tensor("x1").rank() == 0 || args.tensor("x2").rank() == 0)
    return rules::refuse("expected 'x1' and 'x2' to have dimensions");
  all.sizes.back() = 1;
  if (!args.boolean("keepdim"))
    all.sizes.pop_back();
  return rules::addDense(results, all.dtype, all.sizes);
}

Result<Values> definePairwiseDistance(OpBuilder &b) {
  Value *difference = b.add(b.sub(b.arg("x1"), b.arg("x2")), b.arg("eps"));
  return Values{b.call(OpKind::LinalgVectorNorm,
                       {difference, b.arg("p"), Arg::ints(Dims{-1}), b.arg("keepdim")})};
}

} // namespace

const OpDef defs::PairwiseDistance = {
    .schema = "(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferPairwiseDistance,
    .decompose = definePairwiseDistance,
    .doc = "The p-norm of x1 - x2 + eps over the last dimension, broadcast. One floating dtype.",
};

} // namespace cgc::ir
