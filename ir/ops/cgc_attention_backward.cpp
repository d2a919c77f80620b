// cgc.attention_backward: the gradients of scaled dot-product attention.
#include "ir/ops/attention_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcAttentionBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &query = args.tensor("query"), &key = args.tensor("key");
  if (query.rank() != 4 || !isFloating(query.dtype))
    return rules::mismatch("query", "[B, H, L, D] of a floating dtype", query);
  CGC_TRY(rules::sameDType(args, "query", {"key", "value", "grad_out"}));
  Dims expected = query.sizes;
  if (args.tensor("grad_out").sizes != expected)
    return rules::mismatch("grad_out", rules::toString(expected) + ", as 'query'",
                           args.tensor("grad_out"));
  const int64_t batch = expected[0], heads = expected[1], queries = expected[2],
                width = expected[3];
  const int64_t keys = key.rank() == 4 ? key.sizes[2] : -1;
  expected[2] = keys;
  for (llvm::StringRef name : {"key", "value"})
    if (args.tensor(name).sizes != expected)
      return rules::mismatch(
          name, "[B, H, S, D] with 'query' " + rules::toString(query.sizes) + ", both alike",
          args.tensor(name));
  if (args.boolean("packed")) {
    if (keys != queries)
      return rules::refuse("expected as many keys as queries for 'packed'");
    return rules::addDense(results, query.dtype, {batch, queries, 3, heads, width});
  }
  for (int64_t rows : {queries, keys, keys})
    CGC_TRY(rules::addDense(results, query.dtype, {batch, rows, heads, width}));
  return Status::ok();
}

/// In f32 for 16 bits.
Result<Values> defineCgcAttentionBackward(OpBuilder &b) {
  const DType dtype = b.input("query")->tensor().dtype;
  const auto wide = [&](llvm::StringRef name) { return b.widened(b.input(name)); };
  const gradient::AttentionGradients grads =
      gradient::attention(b, {.query = wide("query"),
                              .key = wide("key"),
                              .value = wide("value"),
                              .isCausal = b.args().boolean("is_causal"),
                              .scale = b.number("scale"),
                              .gradOut = wide("grad_out")});
  Values results;
  for (Value *grad : {grads.query, grads.key, grads.value})
    results.push_back(b.permute(b.to(grad, dtype), {0, 2, 1, 3}));
  if (!b.args().boolean("packed"))
    return results;
  return Values{b.call(OpKind::Stack, {Arg::List(results.begin(), results.end()), 2})};
}

} // namespace

const OpDef defs::CgcAttentionBackward = {
    .schema = "(Tensor grad_out, Tensor query, Tensor key, Tensor value, bool is_causal=false, "
              "float scale, bool packed=false) -> Tensor[]",
    .traits = kPure | kAttention,
    .infer = inferCgcAttentionBackward,
    .readsStrides =
        [](const InferArgs &, llvm::StringRef, const TensorType &type) {
          return type.strides.back() == 1 || type.sizes.back() == 1;
        },
    .decompose = defineCgcAttentionBackward,
    .doc = "The gradients of query [B, H, L, D], key and value [B, H, S, D] from that of the "
           "result of attention without a mask, grad_out [B, H, L, D], with the is_causal and "
           "scale of cgc.attention: [B, L, H, D] and two of [B, S, H, D]. With packed, which needs "
           "L = S, they are one tensor [B, L, 3, H, D], as the packed projection has them. The "
           "weights are computed again.",
};

} // namespace cgc::ir
