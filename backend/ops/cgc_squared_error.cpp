// cgc.squared_error: one kernel on cuda.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "runtime/kernels/rowwise/squared_error.h"

namespace cgc::backend {
namespace {

/// The kernel is one cluster. More elements keep all SMs busy in several launches.
constexpr int64_t kMostElements = int64_t(1) << 20;

} // namespace

Result<bool> launchSquaredError(const ir::Node &node, BucketBuilder &builder) {
  const Place self = builder.place(node.arg("self").value());
  const int64_t elements = self.type().numElements();
  return elements <= kMostElements &&
         launch({.kernel = "squared_error_f32",
                 .blocks = kSquaredErrorBlocks,
                 .threads = kSquaredErrorThreads,
                 .reads = {self, builder.place(node.arg("target").value())},
                 .writes = {builder.allocate(*node.result(0)), builder.allocate(*node.result(1))},
                 .ints = {elements},
                 .floats = {*node.arg("loss_factor").asNumber(),
                            *node.arg("gradient_factor").asNumber()}},
                builder);
}

} // namespace cgc::backend
