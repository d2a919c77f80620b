// pow: LibTorch has a kernel for each of tensor^number, number^tensor and tensor^tensor.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerPow(const ir::Node &node, BucketBuilder &builder) {
  const char *overload = !node.arg("self").isValue()       ? "Scalar_out"
                         : !node.arg("exponent").isValue() ? "Tensor_Scalar_out"
                                                           : "Tensor_Tensor_out";
  builder.callInto("aten::pow", overload, callArgs(node, builder),
                   builder.allocate(*node.result()));
  return Status::ok();
}

} // namespace cgc::backend
