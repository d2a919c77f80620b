// The windows of a convolution or a pool, as its kernel takes them.
#pragma once

#include "ir/type.h"
#include "runtime/kernels/conv_windows.h"

namespace cgc::backend {

/// The windows of an op with these arguments, each of one or two elements, whose result has sizes
/// [N, H, W, C].
inline ConvWindows convWindows(const ir::Dims &kernel, const ir::Dims &stride,
                               const ir::Dims &padding, const ir::Dims &dilation,
                               const ir::Dims &result) {
  const auto pair = [](const ir::Dims &of) { return std::array{of.front(), of.back()}; };
  return {pair(kernel), pair(stride), pair(padding), pair(dilation), {result[1], result[2]}};
}

} // namespace cgc::backend
