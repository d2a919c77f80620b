// cgc.attention: one of cgc's own kernels on cuda.
#include "backend/attention.h"
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "backend/ops/lower_attention.h"
#include "runtime/base/check.h"

namespace cgc::backend {
namespace {

/// The mask with the sizes of the scores, broadcast by strides of 0. One of fewer batches than the
/// query keeps them: the kernels repeat them.
Place broadcastMask(Place mask, const Place &query, int64_t keys) {
  const int64_t sizes[] = {query.sizes[0], query.sizes[1], query.sizes[2], keys};
  while (mask.sizes.size() < 4) {
    mask.sizes.insert(mask.sizes.begin(), 1);
    mask.strides.insert(mask.strides.begin(), 0);
  }
  for (int dim = 0; dim < 4; ++dim)
    if (mask.sizes[dim] == 1 && sizes[dim] != 1) {
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

Result<bool> launchFusedAttention(const ir::Node &node, BucketBuilder &builder) {
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
  if (builder.target() != DeviceKind::Cuda || query.type().numElements() == 0 || problem.keys == 0)
    return false;
  if (mask) {
    mask = broadcastMask(*mask, query, problem.keys);
    mask = broadcastMask(additiveMask(*mask, query.dtype, builder), query, problem.keys);
  }
  return launchAttention(problem, {{query, key, value, mask}, {heads}}, builder);
}

} // namespace cgc::backend
