// aten._native_multi_head_attention: LibTorch's fused self-attention layer.
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

Status infer(const InferArgs &args, rules::Results &results) {
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

} // namespace

const OpDef defs::NativeMha = {
    .schema = "(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor "
              "qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? "
              "mask=none, bool need_weights=true, bool average_attn_weights=true, int? "
              "mask_type=none) -> (Tensor, Tensor)",
    .traits = kPure | kAttention,
    .infer = infer,
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
    .doc = "The inference path of nn.MultiheadAttention. query, key, value [B, L, E] are projected "
           "by qkv_weight [3E, E], attended with num_head heads and projected by proj_weight [E, "
           "E]: [B, L, E]. The second result is the attention weights, or an empty tensor with "
           "need_weights=false.",
};

} // namespace cgc::ir
