// max_pool2d: LibTorch's kernel also yields indices, which go to scratch memory.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerMaxPool2d(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  Place indices = builder.temporary(DType::I64, result.sizes);
  builder.callInto("aten::max_pool2d_with_indices", "out", callArgs(node, builder),
                   {result, indices});
  return Status::ok();
}

} // namespace cgc::backend
