// cgc.pool2d: one kernel on cuda.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "backend/ops/lower_windows.h"
#include "ir/op_views.h"
#include "runtime/kernels/images/images.h"

namespace cgc::backend {

Result<bool> launchPool2d(const ir::Node &node, BucketBuilder &builder) {
  const auto pool = *ir::CgcPool2dOp::of(node);
  const Place image = builder.place(pool.input()), result = builder.allocate(*pool.result());
  const ConvWindows windows =
      convWindows(pool.kernelSize(), pool.stride().empty() ? pool.kernelSize() : pool.stride(),
                  pool.padding(), pool.dilation(), result.sizes);
  const PoolNumbers numbers{.kind =
                                int64_t(pool.kind() == "max" ? PoolKind::Max : PoolKind::Average),
                            .countsPadding = pool.countsPadding(),
                            .divisor = pool.divisor().value_or(0)};
  std::vector<int64_t> ints;
  std::ranges::copy(numbers.ints(), std::back_inserter(ints));
  std::ranges::copy(windows.ints(), std::back_inserter(ints));
  return launch({.kernel = kernelNamed("pool", image.dtype),
                 .blocks = poolBlocks(uint64_t(result.type().numElements())),
                 .threads = kImageThreads,
                 .reads = {image},
                 .writes = {result},
                 .ints = ints},
                builder);
}

} // namespace cgc::backend
