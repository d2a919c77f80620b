// stack: a concatenation of views with one more dimension.
#include "backend/ops/cat.h"

namespace cgc::backend {

Status lowerStack(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  int64_t dim = node.arg("dim").as<int64_t>();
  if (dim < 0)
    dim += static_cast<int64_t>(result.sizes.size());
  std::vector<Place> parts;
  for (const ir::Arg &arg : node.arg("tensors").list()) {
    Place part = builder.place(arg.value());
    int64_t stride =
        dim < static_cast<int64_t>(part.sizes.size()) ? part.sizes[dim] * part.strides[dim] : 1;
    part.sizes.insert(part.sizes.begin() + dim, 1);
    part.strides.insert(part.strides.begin() + dim, stride);
    parts.push_back(std::move(part));
  }
  concatenate(parts, dim, result, builder);
  return Status::ok();
}

} // namespace cgc::backend
