// StridedLayout: how elementwise, copy, compare and where iterate over strided operands, one
// element or 16 bytes at a time; and their launch shape.
#pragma once

#include "runtime/kernels/divider.h"
#include "runtime/kernels/kernel_table.h"

#include <algorithm>

namespace cgc {

inline constexpr uint32_t kElementwiseThreads = 256;
/// The most dimensions after merging.
inline constexpr int kElementwiseRank = 6;

/// CTAs for a result of which each thread computes `width` elements at a time. The kernels are
/// correct with any number, because they loop over the grid.
constexpr uint32_t elementwiseBlocks(uint64_t elements, uint64_t width) {
  const uint64_t perBlock = kElementwiseThreads * width;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((elements + perBlock - 1) / perBlock, 1, uint64_t(1) << 16));
}

/// The most operands: the result and three that are read.
inline constexpr int kStridedOperands = 4;

/// The iteration space. A unit is one element, or `width` elements along the innermost dimension.
struct StridedLayout {
  uint32_t units;
  int rank, width;
  Divider sizes[kElementwiseRank];                     ///< In units; the innermost first.
  int64_t strides[kStridedOperands][kElementwiseRank]; ///< In elements for each unit.
};

/// The layout for `operands`, of which the first is the result and the others broadcast to its
/// shape. Units have `width` elements if all operands allow it, otherwise one. An absent operand
/// has a single element. InvalidFile if shapes do not broadcast or exceed the limits.
Result<StridedLayout> stridedLayout(std::span<const OperandView *const> operands, int64_t width);

/// Whether `dtype` represents `number`: floating dtypes round any, others have to represent it
/// exactly.
bool represents(DType dtype, double number);

/// Checks the launch shape of these kernels, and that the result is present.
Status checkStridedLaunch(const LaunchView &launch);

} // namespace cgc
