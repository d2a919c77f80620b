// cgc.pool2d and cgc.pool2d_backward: one kernel each on cuda.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "backend/ops/lower_windows.h"
#include "ir/op_views.h"
#include "runtime/kernels/images/images.h"

namespace cgc::backend {
namespace {

/// The numbers of a launch for a pool, or its gradient, whose results have these sizes.
template <class Op> std::vector<int64_t> numbersOf(const Op &pool, const ir::Dims &results) {
  const ConvWindows windows =
      convWindows(pool.kernelSize(), pool.stride().empty() ? pool.kernelSize() : pool.stride(),
                  pool.padding(), pool.dilation(), results);
  const PoolNumbers numbers{.kind =
                                int64_t(pool.kind() == "max" ? PoolKind::Max : PoolKind::Average),
                            .countsPadding = pool.countsPadding(),
                            .divisor = pool.divisor().value_or(0)};
  std::vector<int64_t> ints;
  std::ranges::copy(numbers.ints(), std::back_inserter(ints));
  std::ranges::copy(windows.ints(), std::back_inserter(ints));
  return ints;
}

bool launchPool(llvm::StringRef kernel, std::vector<std::optional<Place>> reads,
                const Place &result, uint32_t blocks, std::vector<int64_t> ints,
                BucketBuilder &builder) {
  return launch({.kernel = kernelNamed(kernel, result.dtype),
                 .blocks = blocks,
                 .threads = kImageThreads,
                 .reads = std::move(reads),
                 .writes = {result},
                 .ints = std::move(ints)},
                builder);
}

} // namespace

Result<bool> launchPool2d(const ir::Node &node, BucketBuilder &builder) {
  const auto pool = *ir::CgcPool2dOp::of(node);
  const Place result = builder.allocate(*pool.result());
  return launchPool("pool", {builder.place(pool.input())}, result,
                    poolBlocks(uint64_t(result.type().numElements())),
                    numbersOf(pool, result.sizes), builder);
}

Result<bool> launchPool2dBackward(const ir::Node &node, BucketBuilder &builder) {
  const auto pool = *ir::CgcPool2dBackwardOp::of(node);
  const Place grad = densePlace(builder.place(pool.gradOut()), builder);
  const Place result = builder.allocate(*pool.result());
  const auto elements = uint64_t(result.type().numElements());
  return launchPool("pool_backward", {builder.place(pool.input()), grad}, result,
                    pool.kind() == "max" ? maxPoolBackwardBlocks(elements) : poolBlocks(elements),
                    numbersOf(pool, grad.sizes), builder);
}

} // namespace cgc::backend
