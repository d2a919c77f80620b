// StridedLayout: how elementwise, copy, compare and where iterate over strided operands, one
// element or 16 bytes at a time.
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
Result<StridedLayout> stridedLayout(std::span<const TensorView *const> operands, int64_t width);

/// An element of any dtype, in the first bytes. A kernel reads an operand that is a number from it.
using ElementBits = uint64_t;

/// `number` as an element of `dtype`. A floating dtype rounds it; nothing if an integer dtype or
/// bool cannot represent it exactly.
std::optional<ElementBits> elementBits(DType dtype, double number);

/// Checks the launch shape of these kernels, and that the result is present.
Status checkStridedLaunch(const KernelArguments &a);

} // namespace cgc
