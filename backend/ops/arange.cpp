// arange: LibTorch's overload, which computes in the dtype of the result.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerArange(const ir::Node &node, BucketBuilder &builder) {
  builder.callInto(
      "aten::arange", "start_out",
      {builder.arg(node.arg("start")), builder.arg(node.arg("end")), builder.arg(node.arg("step"))},
      builder.allocate(*node.result()));
  return Status::ok();
}

} // namespace cgc::backend
