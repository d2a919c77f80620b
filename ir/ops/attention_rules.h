// attention_rules: the mask check and the gradients that scaled_dot_product_attention and
// cgc.attention share.
#pragma once

#include "ir/gradient.h"
#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Checks 'attn_mask'. Refuses a mask together with 'is_causal', a dtype that is neither bool nor
/// `dtype`, and a mask that does not broadcast to `scores`, the sizes [..., queries, keys].
Status checkAttentionMask(const InferArgs &args, DType dtype, llvm::ArrayRef<int64_t> scores);

} // namespace cgc::ir::rules

namespace cgc::ir::gradient {

/// softmax(query key^T scale + mask) value and the gradient of its result. Leading dimensions
/// broadcast. The mask, which may be null, is bool or is added to the scores.
struct AttentionCall {
  Value *query, *key, *value, *mask = nullptr;
  bool isCausal = false;
  double scale = 1;
  Value *gradOut;
};
/// Of the sizes that the arguments were broadcast to; that of the mask is the scores'.
struct AttentionGradients {
  Value *query, *key, *value, *mask;
};
/// Adds the calls that compute the gradients. Computes the weights again, as softmax(scores),
/// instead of keeping them.
AttentionGradients attention(OpBuilder &b, const AttentionCall &call);

} // namespace cgc::ir::gradient
