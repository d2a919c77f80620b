// cgc.uniform: one kernel on cuda.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "runtime/kernels/random/uniform.h"

namespace cgc::backend {

Result<bool> launchUniform(const ir::Node &node, BucketBuilder &builder) {
  const Place result = flatPlace(builder.allocate(*node.result()), builder);
  const int64_t elements = result.sizes[0];
  return elements > 0 && launch({.kernel = "uniform_f32",
                                 .blocks = uniformBlocks(uint64_t(elements)),
                                 .threads = kUniformThreads,
                                 .reads = {builder.place(node.arg("seed").value()),
                                           builder.place(node.arg("offset").value())},
                                 .writes = {result},
                                 .ints = {node.arg("stream").as<int64_t>()}},
                                builder);
}

} // namespace cgc::backend
