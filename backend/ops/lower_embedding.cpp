// embedding: gathers rows of the table directly into the result; LibTorch's embedding would
// allocate its result.
#include "backend/ops/lower_embedding.h"

#include "backend/kernels.h"

namespace cgc::backend {

bool embedInto(const Place &weight, Place indices, const std::optional<Place> &positions,
               const Place &result, const std::optional<Place> &rowStatistics,
               BucketBuilder &builder) {
  if (indices.sizes.empty()) {
    indices.sizes = {1};
    indices.strides = {1};
  }
  if (!mergeLeading(indices, 1)) {
    Place dense = builder.temporary(indices.dtype, indices.sizes);
    builder.copy(indices, dense);
    indices = dense;
  }
  const Place flat = *mergeLeading(indices, 1);
  const auto launchWith = [&](const std::optional<Place> &statistics) {
    return launchWarpRows(kernelNamed("embedding", weight.dtype), flat.sizes[0],
                          {weight, flat, positions}, result, builder, {}, statistics);
  };
  if (rowStatistics && launchWith(rowStatistics))
    return true;
  if (launchWith(std::nullopt))
    return false;
  Place sum = positions ? builder.temporary(result.dtype, result.sizes) : result, rows = sum;
  rows.sizes = {flat.sizes[0], weight.sizes[1]};
  rows.strides = ir::contiguousStrides(rows.sizes);
  builder.callInto("aten::index_select", "out",
                   {builder.tensor(weight), int64_t{0}, builder.tensor(flat)}, rows);
  if (positions)
    builder.callInto("aten::add", "out",
                     {builder.tensor(sum), builder.tensor(*positions), int64_t{1}}, result);
  return false;
}

Status lowerEmbedding(const ir::Node &node, BucketBuilder &builder) {
  Place weight = builder.place(node.arg("weight").value());
  Place indices = builder.place(node.arg("indices").value());
  embedInto(weight, std::move(indices), {}, builder.allocate(*node.result()), {}, builder);
  return Status::ok();
}

} // namespace cgc::backend
