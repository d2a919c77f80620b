// cgc.rows: one kernel on cuda.
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {

Result<bool> launchRows(const ir::Node &node, BucketBuilder &builder) {
  const Place input = builder.place(node.arg("input").value());
  return launchWarpRows(kernelNamed("rows", input.dtype), input.sizes[0],
                        {input, builder.optionalPlace(node.arg("index"))},
                        builder.allocate(*node.result()), builder);
}

} // namespace cgc::backend
