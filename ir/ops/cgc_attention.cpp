// cgc.attention: softmax(query key^T scale + mask) value, with a token-major result.
#include "ir/ops/attention_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &query = args.tensor("query"), &key = args.tensor("key");
  if (query.rank() != 4 || !isFloating(query.dtype))
    return rules::mismatch("query", "[B, H, L, D] of a floating dtype", query);
  CGC_TRY(rules::sameDType(args, "query", {"key", "value"}));
  Dims expected = query.sizes;
  if (key.rank() == 4)
    expected[2] = key.sizes[2];
  if (key.sizes != expected)
    return rules::mismatch("key", "[B, H, S, D] with 'query' " + rules::toString(query.sizes), key);
  if (args.tensor("value").sizes != expected)
    return rules::mismatch("value", rules::toString(expected) + ", as 'key'", args.tensor("value"));
  int64_t batch = query.sizes[0], heads = query.sizes[1], length = query.sizes[2],
          width = query.sizes[3];
  CGC_TRY(rules::checkAttentionMask(args, query.dtype, {batch, heads, length, key.sizes[2]}));
  // The size of the query was checked, and the result has the same number of elements in another
  // dimension order.
  CGC_TRY(rules::checkSizes(query.dtype, {batch, length, heads, width}));
  return rules::addDense(results, query.dtype, {batch, length, heads * width});
}

} // namespace

const OpDef defs::FusedAttention = {
    .schema = "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=none, bool "
              "is_causal=false, float scale) -> Tensor",
    .traits = kPure | kAttention,
    .infer = infer,
    .readsStrides =
        [](const InferArgs &, llvm::StringRef name, const TensorType &type) {
          return name != "attn_mask" && (type.strides.back() == 1 || type.sizes.back() == 1);
        },
    .doc = "Scaled dot-product attention of query [B, H, L, D] with key and value [B, H, S, D], "
           "which may have any strides, usually those of slices of one packed projection. The "
           "result is token-major, with the heads of a token side by side: [B, L, H * D]. "
           "attn_mask broadcasts to [B, H, L, S]: bool (true keeps the score) or added to the "
           "scores. With is_causal, query l sees the keys up to l.",
};

} // namespace cgc::ir
