// elementwise_* and copy: the ops and the checks. The launch shape is in strided.h.
#pragma once

#include "runtime/kernels/pointwise/strided.h"

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
/// Whether elementwise_i64 has the op.
constexpr bool takesIntegers(ElementwiseOp op) {
  using enum ElementwiseOp;
  return op == Abs || op == Neg || op == Add || op == Sub || op == ReverseSub || op == Mul ||
         op == Maximum || op == Minimum;
}

/// The layout of a checked launch: of y, x and, for elementwise, z, in this order.
Result<StridedLayout> checkElementwise(const LaunchView &launch, DType dtype);
Result<StridedLayout> checkCopy(const LaunchView &launch);

} // namespace cgc
