// softmax: a wider result dtype converts the input first; CUDA's kernel widens f16 on its own.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerSoftmax(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("self").value());
  Place result = builder.allocate(*node.result());
  bool widens = builder.target() == DeviceKind::Cuda && input.dtype == DType::F16 &&
                result.dtype == DType::F32;
  if (input.dtype != result.dtype && !widens) {
    Place converted = builder.temporary(result.dtype, input.sizes);
    builder.copy(input, converted);
    input = converted;
  }
  builder.callInto("aten::_softmax", "out",
                   {builder.tensor(input), builder.arg(node.arg("dim")), widens}, result);
  return Status::ok();
}

} // namespace cgc::backend
