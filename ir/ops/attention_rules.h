// attention_rules: the mask check shared by scaled_dot_product_attention and cgc.attention.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Checks 'attn_mask'. Refuses a mask together with 'is_causal', a dtype that is neither bool nor
/// `dtype`, and a mask that does not broadcast to `scores`, the sizes [..., queries, keys].
Status checkAttentionMask(const InferArgs &args, DType dtype, llvm::ArrayRef<int64_t> scores);

} // namespace cgc::ir::rules
