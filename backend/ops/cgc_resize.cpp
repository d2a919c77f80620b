// cgc.resize: one kernel on cuda.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "runtime/kernels/images/resize.h"

namespace cgc::backend {

Result<bool> launchResize(const ir::Node &node, BucketBuilder &builder) {
  const Place values = builder.place(node.arg("values").value()),
              result = builder.allocate(*node.result());
  return launch({.kernel = kernelNamed("resize", values.dtype),
                 .blocks = resizeBlocks(uint64_t(result.type().numElements()) / 3),
                 .threads = kResizeThreads,
                 .reads = {builder.place(node.arg("pixels").value()),
                           builder.place(node.arg("table").value()), values},
                 .writes = {result}},
                builder);
}

} // namespace cgc::backend
