// aten.cosine_similarity: the cosine of the angle between vectors.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCosineSimilarity(const InferArgs &args, rules::Results &results) {
  if (!isFloating(args.tensor("x1").dtype))
    return rules::mismatch("x1", "of a floating dtype", args.tensor("x1"));
  CGC_TRY(rules::sameDType(args, "x1", {"x2"}));
  CGC_ASSIGN_OR_RETURN(TensorType all, rules::pointwise(args, {"x1", "x2"}));
  CGC_ASSIGN_OR_RETURN(const int64_t dim, rules::wrapDim("dim", args.integer("dim"), all.rank()));
  if (!all.sizes.empty())
    all.sizes.erase(all.sizes.begin() + dim);
  return rules::addDense(results, all.dtype, all.sizes);
}

Result<Values> defineCosineSimilarity(OpBuilder &b) {
  CGC_ASSIGN_OR_RETURN(const TensorType all, rules::pointwise(b.args(), {"x1", "x2"}));
  const Arg dim = Arg::ints(Dims{b.args().integer("dim")});
  const auto normalized = [&](llvm::StringRef name) {
    Value *x = b.expand(b.input(name), all.sizes);
    Value *norm = b.call(OpKind::LinalgVectorNorm, {x, 2, dim, true});
    return b.div(x, b.call(OpKind::ClampMin, {norm, b.arg("eps")}));
  };
  Value *first = normalized("x1");
  return Values{b.call(OpKind::Sum, {b.mul(first, normalized("x2")), dim})};
}

} // namespace

const OpDef defs::CosineSimilarity = {
    .schema = "(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCosineSimilarity,
    .decompose = defineCosineSimilarity,
    .doc = "The sum of x1 / max(|x1|, eps) * x2 / max(|x2|, eps) over dim, broadcast; norms are "
           "over dim."
           " One floating dtype.",
};

} // namespace cgc::ir
