// max_pool2d and max_pool3d: LibTorch's kernels also yield indices, which go to scratch memory.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerMaxPool(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  Place indices = builder.temporary(DType::I64, result.sizes);
  builder.callInto(node.is(ir::OpKind::MaxPool2d) ? "aten::max_pool2d_with_indices"
                                                  : "aten::max_pool3d_with_indices",
                   "out", callArgs(node, builder), {result, indices});
  return Status::ok();
}

} // namespace cgc::backend
