// cgc.normalize: one kernel on cuda.
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {

Result<bool> launchNormalize(const ir::Node &node, BucketBuilder &builder) {
  const Place input = builder.place(node.arg("input").value());
  const int64_t elements = input.type().numElements();
  return elements > 0 &&
         launchWarpRows(kernelNamed("normalize", input.dtype), elements / input.sizes.back(),
                        {input}, builder.allocate(*node.result()), builder,
                        {*node.arg("eps").asNumber()});
}

} // namespace cgc::backend
