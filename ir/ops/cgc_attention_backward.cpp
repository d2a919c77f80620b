// cgc.attention_backward: the gradients of scaled dot-product attention.
#include "ir/ops/attention_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &query = args.tensor("query"), &key = args.tensor("key");
  if (query.rank() != 4 || !isFloating(query.dtype))
    return rules::mismatch("query", "[B, H, L, D] of a floating dtype", query);
  CGC_TRY(rules::sameDType(args, "query", {"key", "value", "grad_out"}));
  Dims expected = query.sizes;
  if (args.tensor("grad_out").sizes != expected)
    return rules::mismatch("grad_out", rules::toString(expected) + ", as 'query'",
                           args.tensor("grad_out"));
  if (key.rank() == 4)
    expected[2] = key.sizes[2];
  for (llvm::StringRef name : {"key", "value"})
    if (args.tensor(name).sizes != expected)
      return rules::mismatch(name, rules::toString(expected) + ", to fit 'query'",
                             args.tensor(name));
  CGC_TRY(rules::checkAttentionMask(
      args, query.dtype, {query.sizes[0], query.sizes[1], query.sizes[2], key.sizes[2]}));
  for (llvm::StringRef name : {"query", "key", "value"})
    CGC_TRY(rules::addDense(results, query.dtype, args.tensor(name).sizes));
  return Status::ok();
}

} // namespace

const OpDef defs::AttentionBackward = {
    .schema = "(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor? attn_mask=none, "
              "bool is_causal=false, float scale) -> (Tensor, Tensor, Tensor)",
    .traits = kPure | kAttention,
    .infer = infer,
    .readsStrides =
        [](const InferArgs &, llvm::StringRef name, const TensorType &type) {
          return name != "attn_mask" && (type.strides.back() == 1 || type.sizes.back() == 1);
        },
    .doc = "The gradients of query [B, H, L, D], key and value [B, H, S, D] from that of the "
           "attention's result, grad_out [B, H, L, D]. The weights are computed again. attn_mask, "
           "is_causal and scale are those of cgc.attention; the mask gets no gradient.",
};

} // namespace cgc::ir
