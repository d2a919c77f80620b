// cgc.dropout: one kernel on cuda, which draws the numbers too.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "runtime/kernels/random/uniform.h"

namespace cgc::backend {

Result<bool> launchTrainDropout(const ir::Node &node, BucketBuilder &builder) {
  const double p = *node.arg("p").asNumber();
  const Place self = builder.place(node.arg("self").value());
  const uint64_t elements = self.type().numElements();
  if (builder.target() != DeviceKind::Cuda || p == 1 || elements == 0)
    return false;
  return launch({.kernel = kernelNamed("dropout", self.dtype),
                 .blocks = uniformBlocks(elements),
                 .threads = kUniformThreads,
                 .reads = {builder.place(node.arg("seed").value()),
                           builder.place(node.arg("offset").value()), densePlace(self, builder)},
                 .writes = {builder.allocate(*node.result())},
                 .ints = {node.arg("stream").as<int64_t>()},
                 .floats = {p}},
                builder);
}

} // namespace cgc::backend
