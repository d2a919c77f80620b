// elementwise_* and copy: the ops, and the launch shape.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace cgc {

/// The ops of elementwise_*: one for each row of elementwise_ops.def.
enum class ElementwiseOp : uint8_t {
#define CGC_ELEMENTWISE_OP(NAME, OPERANDS) NAME,
#include "runtime/kernels/pointwise/elementwise_ops.def"
};
inline constexpr int kElementwiseOperands[] = {
#define CGC_ELEMENTWISE_OP(NAME, OPERANDS) OPERANDS,
#include "runtime/kernels/pointwise/elementwise_ops.def"
};
inline constexpr int kNumElementwiseOps = int(std::size(kElementwiseOperands));
constexpr bool isBinary(ElementwiseOp op) {
  return kElementwiseOperands[int(op)] == 2;
}

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

} // namespace cgc
