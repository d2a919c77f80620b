// scaled_dot_product_attention: LibTorch's attention. cgc.attention: one of cgc's own kernels on
// cuda; else LibTorch's attention, which writes to a view of the result with one slice per head.
#include "backend/attention.h"
#include "backend/kernels.h"
#include "backend/ops/tensor_math.h"
#include "runtime/base/check.h"

namespace cgc::backend {
namespace {

/// The mask as one that is added to scores in `dtype`, with dense columns: itself, or a temporary.
/// A bool mask becomes 0 where it holds, else -infinity.
Place additiveMask(Place mask, DType dtype, BucketBuilder &builder) {
  if (mask.dtype == dtype && (mask.sizes.back() == 1 || mask.strides.back() == 1))
    return mask;
  for (size_t dim = 0; dim + 1 < mask.sizes.size(); ++dim)
    if (mask.strides[dim] == 0) // Broadcast.
      mask.sizes[dim] = 1;
  const Place result = builder.temporary(dtype, mask.sizes);
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  if (mask.dtype != DType::Bool) {
    builder.copy(mask, result);
  } else if (!launchWhere(mask, 0.0, kHidden, result, builder)) {
    TensorMath math(builder);
    math.where(mask, math.number(0.0, dtype), math.number(kHidden, dtype), result);
  }
  return result;
}

/// The mask with the sizes of the scores, broadcast by strides of 0.
Place broadcastMask(Place mask, const Place &query, int64_t keys) {
  const int64_t sizes[] = {query.sizes[0], query.sizes[1], query.sizes[2], keys};
  while (mask.sizes.size() < 4) {
    mask.sizes.insert(mask.sizes.begin(), 1);
    mask.strides.insert(mask.strides.begin(), 0);
  }
  for (int dim = 0; dim < 4; ++dim)
    if (mask.sizes[dim] != sizes[dim]) {
      mask.sizes[dim] = sizes[dim];
      mask.strides[dim] = 0;
    }
  return mask;
}

/// Adds the record of the first kernel that takes these tensors, q, k, v and the mask.
bool launchAttention(const AttentionProblem &problem, RecordTensors tensors,
                     BucketBuilder &builder) {
  const std::vector<std::optional<Place>> reads = tensors.reads;
  for (const AttentionChoice &choice : attentionCandidates(problem, builder.gpu())) {
    tensors.reads = reads;
    tensors.reads.resize(choice.kernel->reads); // Some kernels take no mask.
    if (launch(attentionLaunch(problem, choice), tensors, builder))
      return true;
  }
  return false;
}

/// Adds LibTorch's call with the arguments of its scaled_dot_product_attention but the mask.
void callAttention(std::vector<AtenArg> args, const std::optional<Place> &mask, const Place &result,
                   BucketBuilder &builder) {
  if (mask && builder.target() == DeviceKind::Cuda) {
    // The definition of the op, which takes no bools. Of LibTorch's kernels for GPUs, cuDNN's takes
    // a false for -65504, and the memory-efficient one finfo.min for -infinity: queries without a
    // visible key get other results.
    args[3] = builder.tensor(additiveMask(*mask, result.dtype, builder));
    args.insert(args.begin() + 6, NoneArg{}); // dropout_mask
    builder.callThenCopy("aten::_scaled_dot_product_attention_math", "", std::move(args),
                         {result, std::nullopt}); // Without the weights.
    return;
  }
  if (mask)
    args[3] = builder.tensor(*mask);
  builder.callThenCopy("aten::scaled_dot_product_attention", "", std::move(args), {result});
}

} // namespace

Status lowerAttention(const ir::Node &node, BucketBuilder &builder) {
  const Place result = builder.allocate(*node.result());
  callAttention(callArgs(node, builder), builder.optionalPlace(node.arg("attn_mask")), result,
                builder);
  return Status::ok();
}

Status lowerFusedAttention(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  CGC_CHECK(result.type().isContiguous());
  const Place query = builder.place(node.arg("query").value()),
              key = builder.place(node.arg("key").value()),
              value = builder.place(node.arg("value").value());
  Place heads = result; // [batch, heads, queries, width], as the query.
  heads.sizes = query.sizes;
  heads.strides = {result.strides[0], query.sizes[3], result.strides[1], 1};
  std::optional<Place> mask = builder.optionalPlace(node.arg("attn_mask"));
  const AttentionProblem problem{.dtype = query.dtype,
                                 .batch = query.sizes[0],
                                 .heads = query.sizes[1],
                                 .queries = query.sizes[2],
                                 .keys = key.sizes[2],
                                 .width = query.sizes[3],
                                 .masked = mask.has_value(),
                                 .causal = node.arg("is_causal").as<bool>(),
                                 .scale = *node.arg("scale").asNumber()};
  if (builder.target() == DeviceKind::Cuda && query.type().numElements() > 0 && problem.keys > 0) {
    if (mask) {
      mask = broadcastMask(*mask, query, problem.keys);
      mask = broadcastMask(additiveMask(*mask, query.dtype, builder), query, problem.keys);
    }
    if (launchAttention(problem, {{query, key, value, mask}, {heads}}, builder))
      return Status::ok();
  }
  callAttention({builder.arg(node.arg("query")), builder.arg(node.arg("key")),
                 builder.arg(node.arg("value")), NoneArg{}, 0.0, problem.causal, problem.scale,
                 false},
                mask, heads, builder);
  return Status::ok();
}

} // namespace cgc::backend
