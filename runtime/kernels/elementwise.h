// elementwise and copy: the ops, and the launch shape that the kernels expect.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cgc {

/// What elementwise computes of x, and of y where there is one. Values are part of the plan format:
/// append, never renumber.
enum class ElementwiseOp : uint8_t {
  // Of x.
  Abs,
  Neg,
  Exp,
  Sqrt,
  Rsqrt,
  Sin,
  Cos,
  Erf,
  Sigmoid,
  Tanh,
  Relu,
  Gelu,
  GeluTanh,
  QuickGelu,
  Silu,
  // Of x and y.
  Add,
  Sub,
  ReverseSub, ///< y - x.
  Mul,
  Div,
  ReverseDiv, ///< y / x.
  Pow,
  Maximum,
  Minimum,
};
inline constexpr int kNumElementwiseOps = int(ElementwiseOp::Minimum) + 1;
constexpr bool isBinary(ElementwiseOp op) {
  return op >= ElementwiseOp::Add;
}

inline constexpr uint32_t kElementwiseThreads = 256;
/// Dimensions left after merging.
inline constexpr int kElementwiseRank = 6;

/// Blocks for a result of which each thread computes `width` elements at a time. Any number is
/// right: blocks go on until all is done.
constexpr uint32_t elementwiseBlocks(uint64_t elements, uint64_t width) {
  const uint64_t perBlock = kElementwiseThreads * width;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((elements + perBlock - 1) / perBlock, 1, uint64_t(1) << 16));
}

} // namespace cgc
