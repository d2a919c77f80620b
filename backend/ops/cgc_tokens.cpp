// cgc.tokens: one kernel on cuda; else the class token and the patches, each written to its slice
// of the result.
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {
namespace {

/// The slice [begin, begin + size) of `place` along dimension `dim`.
Place part(Place place, size_t dim, int64_t begin, int64_t size) {
  place.offset += static_cast<uint64_t>(begin * place.strides[dim]) * dtypeSize(place.dtype);
  place.sizes[dim] = size;
  return place;
}

} // namespace

Status lowerTokens(const ir::Node &node, BucketBuilder &builder) {
  Place patches = builder.place(node.arg("patches").value());
  Place token = builder.place(node.arg("class_token").value());
  Place result = builder.allocate(*node.result());
  const ir::Arg &positions = node.arg("positions");
  int64_t count = patches.sizes[1];
  if (launchWarpRows(kernelNamed("tokens", result.dtype), result.sizes[0] * result.sizes[1],
                     {patches, token, builder.optionalPlace(positions)}, result, builder))
    return Status::ok();
  token.sizes = {patches.sizes[0], 1, token.sizes[0]};
  token.strides = {0, 0, token.strides[0]};

  auto put = [&](const Place &source, int64_t begin, int64_t size) {
    Place destination = part(result, 1, begin, size);
    if (positions.isNone())
      return builder.copy(source, destination);
    Place position = part(builder.place(positions.value()), 0, begin, size);
    builder.callInto("aten::add", "out",
                     {builder.tensor(source), builder.tensor(position), int64_t{1}}, destination);
  };
  put(token, 0, 1);
  put(patches, 1, count);
  return Status::ok();
}

} // namespace cgc::backend
