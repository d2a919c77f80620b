// constant_pad_nd: on cuda, a fill of the result and a copy of the elements that stay; on cpu, one
// call of LibTorch.
#include "backend/lowering.h"

#include <cstdlib>

namespace cgc::backend {

Status lowerConstantPadNd(const ir::Node &node, BucketBuilder &builder) {
  Place from = builder.place(node.arg("self").value());
  const Place result = builder.allocate(*node.result());
  if (builder.target() == DeviceKind::Cpu) {
    builder.callInto("aten::constant_pad_nd", "out", callArgs(node, builder), result);
    return Status::ok();
  }
  builder.fill(result, node.arg("value"));
  // Removes the first elements of a dimension.
  const auto advance = [](Place &place, size_t dim, int64_t count) {
    place.sizes[dim] -= count;
    place.offset += static_cast<uint64_t>(count * place.strides[dim]) * dtypeSize(place.dtype);
  };
  Place to = result;
  size_t dim = from.sizes.size();
  const ir::Dims pad = *node.arg("pad").asInts();
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    --dim;
    advance(pad[i] < 0 ? from : to, dim, std::abs(pad[i]));
    (pad[i + 1] < 0 ? from : to).sizes[dim] -= std::abs(pad[i + 1]);
  }
  if (from.type().numElements() != 0)
    builder.copy(from, to);
  return Status::ok();
}

} // namespace cgc::backend
