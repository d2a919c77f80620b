// cgc.attention: one of cgc's own kernels on cuda; else LibTorch's attention, which writes to a
// view of the result with one slice per head.
#include "backend/attention.h"
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "runtime/base/check.h"

namespace cgc::backend {
namespace {

/// The mask in the form that the kernels take: four dimensions, broadcast by strides of 0. Nothing
/// if the keys would be broadcast.
std::optional<Place> broadcastMask(Place mask, const Place &query, int64_t keys) {
  const int64_t sizes[] = {query.sizes[0], query.sizes[1], query.sizes[2], keys};
  while (mask.sizes.size() < 4) {
    mask.sizes.insert(mask.sizes.begin(), 1);
    mask.strides.insert(mask.strides.begin(), 0);
  }
  for (int dim = 0; dim < 4; ++dim)
    if (mask.sizes[dim] != sizes[dim]) {
      if (dim == 3)
        return std::nullopt;
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

} // namespace

Status lowerFusedAttention(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  CGC_CHECK(result.type().isContiguous());
  const Place query = builder.place(node.arg("query").value()),
              key = builder.place(node.arg("key").value()),
              value = builder.place(node.arg("value").value());
  Place heads = result; // [batch, heads, queries, width], as the query.
  heads.sizes = query.sizes;
  heads.strides = {result.strides[0], query.sizes[3], result.strides[1], 1};
  const bool masked = !node.arg("attn_mask").isNone();
  std::optional<Place> mask;
  if (masked)
    mask = broadcastMask(builder.place(node.arg("attn_mask").value()), query, key.sizes[2]);
  const AttentionProblem problem{.dtype = query.dtype,
                                 .batch = query.sizes[0],
                                 .heads = query.sizes[1],
                                 .queries = query.sizes[2],
                                 .keys = key.sizes[2],
                                 .width = query.sizes[3],
                                 .masked = masked,
                                 .causal = node.arg("is_causal").as<bool>(),
                                 .scale = *node.arg("scale").asNumber()};
  const bool fits = builder.target() == DeviceKind::Cuda && masked == mask.has_value() &&
                    query.type().numElements() > 0;
  if (fits && launchAttention(problem, {{query, key, value, mask}, {heads}}, builder))
    return Status::ok();
  builder.callThenCopy("aten::scaled_dot_product_attention", "",
                       {builder.arg(node.arg("query")), builder.arg(node.arg("key")),
                        builder.arg(node.arg("value")), builder.arg(node.arg("attn_mask")), 0.0,
                        builder.arg(node.arg("is_causal")), builder.arg(node.arg("scale")), false},
                       {heads});
  return Status::ok();
}

} // namespace cgc::backend
