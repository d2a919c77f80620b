// linalg_vector_norm: cgc's own kernel on cuda for Euclidean norms of rows; else LibTorch.
#include "backend/ops/lower_sum.h"

namespace cgc::backend {

Status lowerVectorNorm(const ir::Node &node, BucketBuilder &builder) {
  const Place x = builder.place(node.arg("self").value());
  const Place result = builder.allocate(*node.result());
  if (node.arg("ord").asNumber() != 2.0 ||
      !launchSums(node, x, {.squares = true, .root = true}, result, builder))
    builder.callInto("aten::linalg_vector_norm", "out", callArgs(node, builder), result);
  return Status::ok();
}

} // namespace cgc::backend
