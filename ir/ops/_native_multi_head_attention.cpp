// aten._native_multi_head_attention: LibTorch's fused self-attention layer.
#include "ir/op_builder.h"
#include "ir/ops/batch_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

/// A mask may have the sizes of the scores, [B, H, L, L]. Any other mask needs mask_type: 0 for one
/// [L, L] mask shared by all sequences, 1 for a padding mask [B, L].
Status checkMask(const InferArgs &args, llvm::ArrayRef<int64_t> scores) {
  if (args.isNone("mask") || llvm::ArrayRef(args.tensor("mask").sizes) == scores)
    return Status::ok();
  const TensorType &mask = args.tensor("mask");
  if (args.isNone("mask_type"))
    return rules::refuse("expected 'mask_type' with a 'mask', got none");
  int64_t type = args.integer("mask_type");
  if (type != 0 && type != 1)
    return rules::mismatch("mask", rules::toString(scores), mask);
  Dims expected = {type == 0 ? scores[2] : scores[0], scores[3]};
  if (mask.sizes != expected)
    return rules::mismatch("mask", rules::toString(expected), mask);
  return Status::ok();
}

Status inferNativeMultiHeadAttention(const InferArgs &args, rules::Results &results) {
  const TensorType &query = args.tensor("query");
  if (query.rank() != 3 || !isFloating(query.dtype))
    return rules::mismatch("query", "[B, L, E] of a floating dtype", query);
  int64_t batch = query.sizes[0], length = query.sizes[1], width = query.sizes[2];
  int64_t heads = args.integer("num_head");
  if (args.integer("embed_dim") != width)
    return rules::mismatch("embed_dim", llvm::Twine(width) + ", as 'query'",
                           args.integer("embed_dim"));
  if (heads < 1 || width % heads != 0)
    return rules::mismatch("num_head", "a divisor of " + llvm::Twine(width), heads);
  CGC_TRY(rules::sameDType(args, "query",
                           {"key", "value", "qkv_weight", "qkv_bias", "proj_weight", "proj_bias"}));
  const std::pair<llvm::StringRef, Dims> expected[] = {{"key", query.sizes},
                                                       {"value", query.sizes},
                                                       {"qkv_weight", {3 * width, width}},
                                                       {"qkv_bias", {3 * width}},
                                                       {"proj_weight", {width, width}},
                                                       {"proj_bias", {width}}};
  for (const auto &[name, sizes] : expected)
    if (args.tensor(name).sizes != sizes)
      return rules::mismatch(name, rules::toString(sizes), args.tensor(name));
  CGC_TRY(checkMask(args, {batch, heads, length, length}));
  CGC_TRY(rules::addDense(results, query.dtype, query.sizes));
  // Like LibTorch, returns no weights for an empty batch.
  if (!args.boolean("need_weights") || query.numElements() == 0)
    return rules::addDense(results, query.dtype, {0});
  if (args.boolean("average_attn_weights"))
    return rules::addDense(results, query.dtype, {batch, length, length});
  return rules::addDense(results, query.dtype, {batch, heads, length, length});
}

/// Linear, scaled_dot_product_attention, linear. LibTorch's fused layer gives masks other
/// semantics: true excludes a key, and a row may have no key at all.
Result<Values> defineNativeMultiHeadAttention(OpBuilder &b) {
  Value *query = b.input("query");
  if (query != b.input("key") || query != b.input("value"))
    return rules::refuse("query, key and value are not one tensor");
  if (b.result(1)->hasUsers())
    return rules::refuse("the attention weights are used");
  if (b.input("mask"))
    return rules::refuse("it has a mask");
  const Dims sizes = query->tensor().sizes; // [B, L, E]
  const int64_t heads = b.args().integer("num_head");
  Value *packed = b.call(OpKind::Linear, {query, b.arg("qkv_weight"), b.arg("qkv_bias")});
  Value *split = b.call(OpKind::View,
                        {packed, Arg::ints(Dims{sizes[0], sizes[1], 3, heads, sizes[2] / heads})});
  Value *qkv[3];
  for (int64_t part = 0; part < 3; ++part)
    qkv[part] = b.permute(b.call(OpKind::Select, {split, 2, part}), {0, 2, 1, 3});
  Value *attended = b.call(OpKind::ScaledDotProductAttention, {qkv[0], qkv[1], qkv[2]});
  Value *merged = b.reshape(b.permute(attended, {0, 2, 1, 3}), sizes);
  return Values{b.call(OpKind::Linear, {merged, b.arg("proj_weight"), b.arg("proj_bias")})};
}

} // namespace

const OpDef defs::NativeMultiHeadAttention = {
    .schema = "(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor "
              "qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? "
              "mask=none, bool need_weights=true, bool average_attn_weights=true, int? "
              "mask_type=none) -> (Tensor, Tensor)",
    .traits = kPure | kAttention,
    .infer = inferNativeMultiHeadAttention,
    .aten = "copy aten::_native_multi_head_attention",
    .batch =
        [](const BatchCall &call) {
          batch::Join join(call);
          for (llvm::StringRef name : {"query", "key", "value"})
            join.add(call.args[name], batch::leading(call.args.tensor(name), 1));
          if (call.args.isTensor("mask")) { // [B, H, L, L], [L, L] or [B, L].
            const TensorType &mask = call.args.tensor("mask");
            const bool batched = mask.rank() == 4 || call.args.integer("mask_type") == 1;
            join.add(call.args["mask"], batch::leading(mask, batched ? 1 : 0));
          }
          return join.state();
        },
    .decompose = defineNativeMultiHeadAttention,
    .doc = "The inference path of nn.MultiheadAttention. query, key, value [B, L, E] are projected "
           "by qkv_weight [3E, E], attended with num_head heads and projected by proj_weight [E, "
           "E]: [B, L, E]. The second result is the attention weights, or an empty tensor with "
           "need_weights=false.",
};

} // namespace cgc::ir
