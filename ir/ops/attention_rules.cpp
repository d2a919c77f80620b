// attention_rules: the type rule of attention masks.
#include "ir/ops/attention_rules.h"

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
