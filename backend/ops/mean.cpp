// mean: cgc's own kernels on cuda; else LibTorch.
#include "backend/ops/lower_sum.h"

namespace cgc::backend {

Status lowerMean(const ir::Node &node, BucketBuilder &builder) {
  const Place x = builder.place(node.arg("self").value());
  const Place result = builder.allocate(*node.result());
  const int64_t elements = elementsOfSum(node, x);
  if (!launchSums(node, x, {.factor = 1.0 / static_cast<double>(elements)}, result, builder))
    builder.callInto("aten::mean", "out", callArgs(node, builder), result);
  return Status::ok();
}

} // namespace cgc::backend
