// aten.scaled_dot_product_attention: softmax(query key^T scale + mask) value.
#include "ir/ops/attention_rules.h"
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cgc::ir {
namespace {

/// Returns the strides of a dense tensor with the query's dimension order in memory, except for the
/// last dimension, as LibTorch's kernels write it. Row-major if the query is broadcast.
Dims stridesLike(const TensorType &query, llvm::ArrayRef<int64_t> sizes) {
  if (query.sizes.size() != sizes.size() || llvm::is_contained(query.strides, 0))
    return contiguousStrides(sizes);
  Dims order(sizes.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  if (!query.isContiguous())
    llvm::stable_sort(order,
                      [&](int64_t a, int64_t b) { return query.strides[a] > query.strides[b]; });
  Dims strides(sizes.size(), 1);
  int64_t stride = sizes.back();
  for (int64_t dim : llvm::reverse(order)) {
    strides[dim] = stride;
    stride *= std::max<int64_t>(sizes[dim], 1);
  }
  return strides;
}

Status inferScaledDotProductAttention(const InferArgs &args, rules::Results &results) {
  const TensorType &query = args.tensor("query"), &key = args.tensor("key"),
                   &value = args.tensor("value");
  for (llvm::StringRef name : {"query", "key", "value"})
    if (args.tensor(name).rank() < 2)
      return rules::mismatch(name, "of rank 2 or more", args.tensor(name));
  if (!isFloating(query.dtype))
    return rules::mismatch("query", "of a floating dtype", query);
  CGC_TRY(rules::sameDType(args, "query", {"key", "value"}));
  if (args.number("dropout_p") != 0)
    return rules::refuse(
        "expected 'dropout_p' to be 0: cgc compiles for inference; call eval() before tracing");
  llvm::ArrayRef<int64_t> q = query.sizes, k = key.sizes, v = value.sizes;
  int64_t queries = q[q.size() - 2], keys = k[k.size() - 2];
  if (k.back() != q.back())
    return rules::mismatch("key", "[..., S, " + llvm::Twine(q.back()) + "], as 'query'", key);
  if (v[v.size() - 2] != keys)
    return rules::mismatch("value", "[..., " + llvm::Twine(keys) + ", V], as 'key'", value);
  Dims qBatch(q.drop_back(2)), kBatch(k.drop_back(2)), vBatch(v.drop_back(2));
  if (args.boolean("enable_gqa")) {
    for (llvm::StringRef name : {"query", "key", "value"})
      if (args.tensor(name).rank() < 3)
        return rules::mismatch(name, "of rank 3 or more with 'enable_gqa'", args.tensor(name));
    int64_t heads = qBatch.back();
    for (auto [name, batch] : {std::pair("key", &kBatch), std::pair("value", &vBatch)}) {
      if (batch->back() == 0 || heads % batch->back() != 0)
        return rules::mismatch(name, "of a number of heads that divides " + llvm::Twine(heads),
                               args.tensor(name));
      batch->back() = heads; // Each key and value head serves several query heads.
    }
  }
  CGC_ASSIGN_OR_RETURN(Dims sizes,
                       rules::broadcast("the batches of 'query' and 'key'", qBatch, kBatch));
  Dims scores = sizes;
  scores.append({queries, keys});
  CGC_TRY(rules::checkAttentionMask(args, query.dtype, scores));
  CGC_ASSIGN_OR_RETURN(
      sizes, rules::broadcast("the batches of 'query', 'key' and 'value'", sizes, vBatch));
  sizes.append({queries, v.back()});
  CGC_TRY(rules::addDense(results, query.dtype, sizes));
  results.back().type.strides = stridesLike(query, sizes);
  return Status::ok();
}

BatchState batchOfScaledDotProductAttention(const BatchCall &call) {
  const int64_t rank = call.result().rank();
  const bool grouped = call.args.boolean("enable_gqa");
  batch::Join join(call);
  for (llvm::StringRef name : {"query", "key", "value", "attn_mask"}) {
    if (!call.args.isTensor(name))
      continue;
    batch::DimMap map = batch::broadcast(call.args.tensor(name), call.result());
    // The query [L, E], the key [S, E], the value [S, V], the mask [L, S].
    for (int64_t &to : map)
      if (to == rank - 1 || (to == rank - 2 && name != "query" && name != "attn_mask") ||
          (to == rank - 2 && call.args.boolean("is_causal")) || (to == rank - 3 && grouped))
        to = batch::kCombined;
    if (name == "value")
      map.back() = rank - 1;
    join.add(call.args[name], map);
  }
  return join.state();
}

/// `value` [..., heads / r, S, E] with each head `times` r times: [..., heads, S, E].
Value *repeatedHeads(GradientBuilder &b, Value *value, int64_t heads) {
  Dims sizes = value->tensor().sizes;
  auto head = sizes.end() - 3;
  if (*head == heads)
    return value;
  const int64_t times = heads / *head;
  sizes.insert(head + 1, times);
  value = b.expand(b.call(OpKind::Unsqueeze, {value, -3}), sizes);
  sizes.erase(sizes.end() - 3);
  *(sizes.end() - 3) = heads;
  return b.reshape(value, sizes);
}

/// The gradient of a value from that of its repeatedHeads.
Value *sumOfHeads(GradientBuilder &b, Value *grad, const TensorType &type) {
  Dims sizes = grad->tensor().sizes;
  const int64_t heads = *(type.sizes.end() - 3);
  auto head = sizes.end() - 3;
  if (*head == heads)
    return grad;
  const int64_t times = *head / heads;
  *head = heads;
  sizes.insert(head + 1, times);
  return b.sum(b.reshape(grad, sizes), {-3}, /*keepDim=*/false);
}

Status backwardScaledDotProductAttention(GradientBuilder &b) {
  gradient::AttentionCall call{.query = b.input("query"),
                               .key = b.input("key"),
                               .value = b.input("value"),
                               .mask = b.input("attn_mask"),
                               .isCausal = b.arg("is_causal").as<bool>(),
                               .gradOut = b.grad()};
  const Dims &sizes = call.query->tensor().sizes;
  call.scale = b.arg("scale").isNone() ? 1 / std::sqrt(static_cast<double>(sizes.back()))
                                       : b.number("scale");
  const bool grouped = b.arg("enable_gqa").as<bool>();
  if (grouped) {
    const int64_t heads = *(sizes.end() - 3);
    call.key = repeatedHeads(b, call.key, heads);
    call.value = repeatedHeads(b, call.value, heads);
  }
  const gradient::AttentionGradients grads = gradient::attention(b, call);
  for (const auto &[name, grad] : {std::pair("key", grads.key), std::pair("value", grads.value)})
    if (b.needs(name))
      b.set(name, grouped ? sumOfHeads(b, grad, b.input(name)->tensor()) : grad);
  b.set("query", grads.query);
  b.set("attn_mask", grads.mask);
  return Status::ok();
}

} // namespace

const OpDef defs::ScaledDotProductAttention = {
    .schema =
        "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=none, float dropout_p=0.0, "
        "bool is_causal=false, float? scale=none, bool enable_gqa=false) -> Tensor",
    .traits = kPure | kAttention,
    .infer = inferScaledDotProductAttention,
    .readsStrides =
        [](const InferArgs &, llvm::StringRef name, const TensorType &type) {
          return name != "attn_mask" && (type.strides.back() == 1 || type.sizes.back() == 1);
        },
    .batch = batchOfScaledDotProductAttention,
    .gradient = backwardScaledDotProductAttention,
    .doc = "query [..., L, E], key [..., S, E], value [..., S, V]: [..., L, V]; leading dimensions "
           "broadcast. attn_mask broadcasts to [..., L, S]: bool (true keeps the score) or added "
           "to the scores. A query whose scores are all -inf gets 0, unlike the NaN of softmax. "
           "scale is 1 / sqrt(E) by default. With enable_gqa, key and value may have fewer heads "
           "(dimension -3). Only dropout_p=0. The result lies in memory in the query's order of "
           "dimensions.",
};

} // namespace cgc::ir
