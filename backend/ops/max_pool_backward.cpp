// cgc.max_pool2d_backward: a scatter_add over the pixels of each image. LibTorch's own kernel for
// the CPU writes wherever the indices say; scatter_add checks them.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerMaxPool2dBackward(const ir::Node &node, BucketBuilder &builder) {
  // [N, C, H, W] as [N * C, H * W]: dense tensors need no copy.
  const auto images = [](Place place) {
    int64_t count = 1;
    for (const int64_t size : llvm::ArrayRef(place.sizes).drop_back(2))
      count *= size;
    place.sizes = {count, place.sizes[place.sizes.size() - 2] * place.sizes.back()};
    place.strides = ir::contiguousStrides(place.sizes);
    return place;
  };
  const auto argument = [&](llvm::StringRef name) {
    return images(densePlace(builder.place(node.arg(name).value()), builder));
  };
  const Place result = images(builder.allocate(*node.result()));
  Place zeros = scalarTensor(0, result.dtype, builder);
  zeros.sizes = result.sizes;
  zeros.strides.assign(2, 0);
  builder.callInto("aten::scatter_add", "out",
                   {builder.tensor(zeros), int64_t{1}, builder.tensor(argument("indices")),
                    builder.tensor(argument("grad_output"))},
                   result);
  return Status::ok();
}

} // namespace cgc::backend
