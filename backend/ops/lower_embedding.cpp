// embedding: gathers rows of the table directly into the result; LibTorch's embedding would
// allocate its result.
#include "backend/ops/lower_embedding.h"

#include "backend/kernels.h"

namespace cgc::backend {
namespace {

/// The indices as a list, or a copy of them.
Place listOf(Place indices, BucketBuilder &builder) {
  if (indices.sizes.empty()) {
    indices.sizes = {1};
    indices.strides = {1};
  }
  const std::optional<Place> flat = mergeLeading(indices, 1);
  return flat ? *flat : *mergeLeading(densePlace(indices, builder), 1);
}

} // namespace

bool launchEmbedding(const Place &weight, const Place &indices,
                     const std::optional<Place> &positions, const Place &result,
                     const std::optional<Place> &rowStatistics, BucketBuilder &builder) {
  const Place list = listOf(indices, builder);
  return launchWarpRows(kernelNamed("embedding", weight.dtype), list.sizes[0],
                        {weight, list, positions}, result, builder, {}, rowStatistics);
}

Status lowerEmbedding(const ir::Node &node, BucketBuilder &builder) {
  const Place weight = builder.place(node.arg("weight").value()),
              indices = listOf(builder.place(node.arg("indices").value()), builder);
  Place rows = builder.allocate(*node.result());
  if (launchEmbedding(weight, indices, {}, rows, {}, builder))
    return Status::ok();
  rows.sizes = {indices.sizes[0], weight.sizes[1]};
  rows.strides = ir::contiguousStrides(rows.sizes);
  builder.callInto("aten::index_select", "out",
                   {builder.tensor(weight), int64_t{0}, builder.tensor(indices)}, rows);
  return Status::ok();
}

} // namespace cgc::backend
