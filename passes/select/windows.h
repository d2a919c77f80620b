// The windows of convolutions, as patterns ask for them.
#pragma once

#include "ir/op_views.h"

namespace cgc::passes {

/// Whether an argument of one or two elements is `height` and `width`.
inline bool isPair(const ir::Dims &of, int64_t height, int64_t width) {
  return of.front() == height && of.back() == width;
}

/// Whether a convolution has neither padding nor dilation nor groups.
inline bool hasPlainWindows(const ir::Conv2dOp &conv) {
  return isPair(conv.padding(), 0, 0) && isPair(conv.dilation(), 1, 1) && conv.groups() == 1;
}

} // namespace cgc::passes
