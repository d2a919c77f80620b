// What the rules of scaled_dot_product_attention and cgc.attention share.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Refuses an `attn_mask` beside `is_causal`, of a dtype that is neither bool nor `dtype`, or that
/// does not broadcast to `scores`, the sizes [..., queries, keys].
Status checkAttentionMask(const InferArgs &args, DType dtype, llvm::ArrayRef<int64_t> scores);

} // namespace cgc::ir::rules
