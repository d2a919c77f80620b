// attention_rules: the type rule of attention masks, and the gradients of attention.
#include "ir/ops/attention_rules.h"

#include "ir/ops/gradient_rules.h"

#include <limits>

namespace cgc::ir::rules {

Status checkAttentionMask(const InferArgs &args, DType dtype, llvm::ArrayRef<int64_t> scores) {
  if (args.isNone("attn_mask"))
    return Status::ok();
  const TensorType &mask = args.tensor("attn_mask");
  if (args.boolean("is_causal"))
    return refuse("expected 'attn_mask' to be none with 'is_causal'");
  if (mask.dtype != DType::Bool && mask.dtype != dtype)
    return mismatch("attn_mask", "of dtype bool or " + std::string(dtypeName(dtype)), mask);
  if (mask.rank() < 2 || !broadcastsTo(mask.sizes, scores))
    return mismatch("attn_mask", "of rank 2 or more and broadcastable to " + toString(scores),
                    mask);
  return Status::ok();
}

} // namespace cgc::ir::rules

namespace cgc::ir {

gradient::AttentionGradients gradient::attention(OpBuilder &b, const AttentionCall &call) {
  const DType dtype = call.query->tensor().dtype;
  Value *key = b.transposed(call.key);
  // Scores of 16 bits would round the weights.
  Value *scores = b.widened(b.matmul(b.mul(call.query, call.scale), key));
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  if (call.isCausal) {
    const Dims &sizes = scores->tensor().sizes;
    Value *all = b.call(OpKind::Full, {Arg::ints(Dims{*(sizes.end() - 2), sizes.back()}), true});
    scores = b.call(OpKind::Where, {b.call(OpKind::Tril, {all}), scores, kHidden});
  } else if (call.mask) {
    scores = call.mask->tensor().dtype == DType::Bool
                 ? b.call(OpKind::Where, {call.mask, scores, kHidden})
                 : b.add(scores, call.mask);
  }
  Value *weights = b.call(OpKind::Softmax, {scores, -1});
  if (call.mask) // A row without a visible key has the weights 0, not NaN.
    weights = unless(b, b.call(OpKind::Eq, {scores, kHidden}), weights);
  Value *weighted = b.mul(weights, b.widened(b.matmul(call.gradOut, b.transposed(call.value))));
  Value *dS = b.sub(weighted, b.mul(weights, b.sum(weighted, {-1}, /*keepDim=*/true)));
  Value *scaled = b.mul(b.to(dS, dtype), call.scale);
  return {.query = b.matmul(scaled, call.key),
          .key = b.matmul(b.transposed(scaled), call.query),
          .value = b.matmul(b.transposed(b.to(weights, dtype)), call.gradOut),
          .mask = dS};
}

} // namespace cgc::ir
