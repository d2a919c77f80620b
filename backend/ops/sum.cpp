// sum: cgc's own kernels on cuda; else LibTorch.
#include "backend/ops/lower_sum.h"

namespace cgc::backend {

Status lowerSum(const ir::Node &node, BucketBuilder &builder) {
  const Place result = builder.allocate(*node.result());
  if (!launchSums(node, builder.place(node.arg("self").value()), {}, result, builder))
    builder.callInto("aten::sum", "IntList_out", callArgs(node, builder), result);
  return Status::ok();
}

} // namespace cgc::backend
