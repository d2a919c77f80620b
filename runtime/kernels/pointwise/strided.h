// How kernels go through tensors of any strides, element by element or 16 bytes at a time, as the
// host finds it out: elementwise, copy, compare and where.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/pointwise/elementwise.h"

#include <cstdint>
#include <optional>
#include <span>

namespace cgc {

/// At most: the result and three that are read.
inline constexpr int kStridedOperands = 4;

/// How unit number n (one element, or `width` along the innermost dimension) is found.
struct StridedLayout {
  uint32_t units;
  int rank, width;
  Divider sizes[kElementwiseRank];                     ///< In units; the innermost first.
  int64_t strides[kStridedOperands][kElementwiseRank]; ///< In elements for each unit.
};

/// How to walk the operands, the result first, broadcast to its shape; `width` elements at a time
/// where they allow it. One that is absent has a single element.
Result<StridedLayout> stridedLayout(std::span<const TensorView *const> operands, int64_t width);

/// An element of any dtype, in its first bytes: where a kernel takes a number for an operand, it
/// reads it from here.
using ElementBits = uint64_t;

/// `number` as an element of `dtype`: rounded if that is a floating one, and nothing if it is not
/// and has no such number.
std::optional<ElementBits> elementBits(DType dtype, double number);

/// The launch shape of these kernels, and that there is a result.
Status checkStridedLaunch(const KernelArguments &a);

} // namespace cgc
