// cgc.tokens: one kernel on cuda.
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {

Result<bool> launchTokens(const ir::Node &node, BucketBuilder &builder) {
  const Place result = builder.allocate(*node.result());
  return launchWarpRows(kernelNamed("tokens", result.dtype), result.sizes[0] * result.sizes[1],
                        {builder.place(node.arg("patches").value()),
                         builder.place(node.arg("class_token").value()),
                         builder.optionalPlace(node.arg("positions"))},
                        result, builder);
}

} // namespace cgc::backend
