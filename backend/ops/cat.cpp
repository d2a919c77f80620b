// cat: on cuda, one copy of each part into its slice of the result; on cpu, one call of LibTorch.
#include "backend/ops/cat.h"

namespace cgc::backend {

void concatenate(llvm::ArrayRef<Place> parts, int64_t dim, const Place &result,
                 BucketBuilder &builder) {
  if (builder.target() == DeviceKind::Cpu) {
    std::vector<TensorId> tensors;
    for (const Place &part : parts)
      tensors.push_back(builder.tensor(part));
    builder.callInto("aten::cat", "out", {std::move(tensors), dim}, result);
    return;
  }
  if (dim < 0)
    dim += static_cast<int64_t>(result.sizes.size());
  Place slice = result;
  for (const Place &part : parts) {
    if (part.type().numElements() == 0)
      continue;
    slice.sizes[dim] = part.sizes[dim];
    builder.copy(part, slice);
    slice.offset +=
        static_cast<uint64_t>(part.sizes[dim] * slice.strides[dim]) * dtypeSize(slice.dtype);
  }
}

Status lowerCat(const ir::Node &node, BucketBuilder &builder) {
  std::vector<Place> parts;
  for (const ir::Arg &arg : node.arg("tensors").list())
    parts.push_back(builder.place(arg.value()));
  concatenate(parts, node.arg("dim").as<int64_t>(), builder.allocate(*node.result()), builder);
  return Status::ok();
}

} // namespace cgc::backend
