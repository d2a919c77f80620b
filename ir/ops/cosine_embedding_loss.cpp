// aten.cosine_embedding_loss: the cosine embedding loss.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCosineEmbeddingLoss(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input1"), &target = args.tensor("target");
  if (!isFloating(input.dtype))
    return rules::mismatch("input1", "of a floating dtype", input);
  CGC_TRY(rules::sameDType(args, "input1", {"input2"}));
  if (input.rank() != target.rank() + 1 || args.tensor("input2").rank() != input.rank() ||
      input.rank() > 2)
    return rules::refuse("expected two inputs [N, D] and a target [N], or [D] and []");
  CGC_ASSIGN_OR_RETURN(const TensorType all, rules::pointwise(args, {"input1", "input2"}));
  CGC_ASSIGN_OR_RETURN(const Dims sizes,
                       rules::broadcast("the inputs and 'target'",
                                        llvm::ArrayRef(all.sizes).drop_back(), target.sizes));
  return rules::reducedLoss(args, all.dtype, sizes, results);
}

/// LibTorch adds a number to the squares instead of bounding the norms.
Result<Values> defineCosineEmbeddingLoss(OpBuilder &b) {
  constexpr double kEpsilon = 1e-12;
  const auto product = [&](llvm::StringRef x, llvm::StringRef y) {
    return b.sum(b.mul(b.arg(x), b.arg(y)), {-1}, /*keepDim=*/false);
  };
  Value *both = product("input1", "input2");
  Value *first = b.add(product("input1", "input1"), kEpsilon);
  Value *second = b.add(product("input2", "input2"), kEpsilon);
  Value *cosine = b.div(both, b.call(OpKind::Sqrt, {b.mul(first, second)}));
  Value *alike = b.call(OpKind::Rsub, {cosine, 1.0});
  Value *unlike = b.call(OpKind::ClampMin, {b.sub(cosine, b.arg("margin")), 0.0});
  const auto ifTarget = [&](int64_t is, Value *loss) {
    return b.where(b.call(OpKind::Eq, {b.arg("target"), is}), loss);
  };
  Value *ofAlike = ifTarget(1, alike);
  return rules::reduced(b, b.add(ofAlike, ifTarget(-1, unlike)));
}

} // namespace

const OpDef defs::CosineEmbeddingLoss = {
    .schema = "(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> "
              "Tensor",
    .traits = kPure | kReduction,
    .infer = inferCosineEmbeddingLoss,
    .decompose = defineCosineEmbeddingLoss,
    .doc = "1 - c where target is 1 and max(0, c - margin) where it is -1, reduced; c is the "
           "cosine of input1 and input2 over the last dimension.",
};

} // namespace cgc::ir
