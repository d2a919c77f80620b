// cgc.attention: softmax(query key^T scale + mask) value, with a token-major result.
#include "ir/ops/attention_rules.h"
#include "ir/ops/gradient_rules.h"

namespace cgc::ir {
namespace {

/// Returns how often the batches of a mask [N, H, L, S] repeat for `batch`; 1 if the mask
/// broadcasts.
int64_t repeatsOf(const TensorType &mask, int64_t batch) {
  const int64_t batches = mask.rank() == 4 ? mask.sizes[0] : 1;
  return batches > 1 && batch % batches == 0 ? batch / batches : 1;
}

/// Returns 'attn_mask' with its batches repeated; null if there is no mask.
Value *repeatedMask(OpBuilder &b) {
  Value *mask = b.input("attn_mask");
  const int64_t repeats = mask ? repeatsOf(mask->tensor(), b.input("query")->tensor().sizes[0]) : 1;
  if (repeats == 1)
    return mask;
  Dims sizes = mask->tensor().sizes;
  sizes.insert(sizes.begin(), repeats);
  Value *repeated = b.call(OpKind::Expand, {mask, Arg::ints(sizes)});
  sizes.erase(sizes.begin());
  sizes[0] *= repeats;
  return b.reshape(repeated, sizes);
}

Status inferCgcAttention(const InferArgs &args, rules::Results &results) {
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
  const int64_t repeats = args.isNone("attn_mask") ? 1 : repeatsOf(args.tensor("attn_mask"), batch);
  CGC_TRY(
      rules::checkAttentionMask(args, query.dtype, {batch / repeats, heads, length, key.sizes[2]}));
  // The size of the query was checked, and the result has the same number of elements in another
  // dimension order.
  CGC_TRY(rules::checkSizes(query.dtype, {batch, length, heads, width}));
  return rules::addDense(results, query.dtype, {batch, length, heads * width});
}

/// One call of cgc.attention_backward for 16 bits without a mask; else ordinary ops.
Status backwardCgcAttention(GradientBuilder &b) {
  Value *query = b.input("query"), *key = b.input("key"), *value = b.input("value");
  const Dims sizes = query->tensor().sizes;
  const int64_t batch = sizes[0], heads = sizes[1], queries = sizes[2], width = sizes[3];
  const Dims order = {0, 2, 1, 3}; // From [B, L, H, D] to [B, H, L, D], or back.
  const auto swapped = [&](Value *v) { return b.call(OpKind::Permute, {v, Arg::ints(order)}); };
  Value *grad = swapped(b.reshape(b.grad(), {batch, queries, heads, width}));
  const bool isCausal = b.arg("is_causal").as<bool>();
  const double scale = b.number("scale");
  if (dtypeSize(query->tensor().dtype) != 2 || b.input("attn_mask")) {
    const gradient::AttentionGradients grads =
        gradient::attention(b, {query, key, value, repeatedMask(b), isCausal, scale, grad});
    b.set("query", grads.query);
    b.set("key", grads.key);
    b.set("value", grads.value);
    Value *mask = b.input("attn_mask");
    if (const int64_t repeats = mask ? repeatsOf(mask->tensor(), batch) : 1; repeats != 1)
      b.set("attn_mask", b.reshape(grads.mask, {repeats, batch / repeats, heads, queries,
                                                key->tensor().sizes[2]}));
    else
      b.set("attn_mask", grads.mask);
    return Status::ok();
  }
  const bool packed = key->tensor().sizes[2] == queries;
  Node *grads =
      b.callNode(OpKind::CgcAttentionBackward, {grad, query, key, value, isCausal, scale, packed});
  int64_t i = 0;
  for (llvm::StringRef name : {"query", "key", "value"}) {
    Value *part = packed ? b.call(OpKind::Select, {grads->result(), 2, i}) : grads->result(i);
    b.set(name, swapped(part));
    ++i;
  }
  return Status::ok();
}

Result<Values> defineCgcAttention(OpBuilder &b) {
  Value *mask = repeatedMask(b);
  Value *heads = b.call(OpKind::ScaledDotProductAttention,
                        {b.arg("query"), b.arg("key"), b.arg("value"), mask ? Arg(mask) : Arg(),
                         0.0, b.arg("is_causal"), b.arg("scale")});
  const Dims sizes = heads->tensor().sizes; // [B, H, L, D]
  return Values{
      b.reshape(b.permute(heads, {0, 2, 1, 3}), {sizes[0], sizes[2], sizes[1] * sizes[3]})};
}

} // namespace

const OpDef defs::CgcAttention = {
    .schema = "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=none, bool "
              "is_causal=false, float scale) -> Tensor",
    .traits = kPure | kAttention,
    .infer = inferCgcAttention,
    .readsStrides =
        [](const InferArgs &, llvm::StringRef name, const TensorType &type) {
          return name != "attn_mask" && (type.strides.back() == 1 || type.sizes.back() == 1);
        },
    .gradient = backwardCgcAttention,
    .decompose = defineCgcAttention,
    .doc = "Scaled dot-product attention of query [B, H, L, D] with key and value [B, H, S, D], "
           "which may have any strides, usually those of slices of one packed projection. The "
           "result is token-major, with the heads of a token side by side: [B, L, H * D]. "
           "attn_mask broadcasts to [B, H, L, S], or to [N, H, L, S] for an N that divides B: its "
           "batch b % N is that of batch b, as of the windows of images. It is bool (true keeps "
           "the score) or added to the scores. With is_causal, query l sees the keys up to l. A "
           "query whose scores are all -inf gets 0. The result of matmul and softmax is NaN there: "
           "a pass makes this op of them only without a mask or with a finite one.",
};

} // namespace cgc::ir
