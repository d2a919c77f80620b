// gather and scatter_add_*: the launch shape and the checks.
#pragma once

#include "runtime/kernels/divider.h"
#include "runtime/kernels/kernel_table.h"

#include <algorithm>

namespace cgc {

inline constexpr uint32_t kGatherThreads = 256;
/// CTAs for a result of so many elements. The kernels are correct with any number, because they
/// loop over the grid.
constexpr uint64_t gatherBlocks(uint64_t elements) {
  return std::clamp<uint64_t>((elements + kGatherThreads - 1) / kGatherThreads, 1, 1 << 16);
}

/// A checked launch: the result is [outer, n, inner] for scatter_add, [outer, k, inner] for gather.
struct GatherLaunch {
  int64_t n, k;
  uint32_t elements; ///< Of the result.
  Divider inner;     ///< The elements of the last dimension.
  Divider span;      ///< The elements of the result's last two dimensions.
};
Result<GatherLaunch> checkGather(const LaunchView &launch);
Result<GatherLaunch> checkScatterAdd(const LaunchView &launch, DType dtype);

} // namespace cgc
