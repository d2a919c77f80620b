// window_rules: what convolution and pooling share: extents of windows that slide over an image.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Height and width.
using Extent = std::pair<int64_t, int64_t>;

/// An `int[]` argument of one or two elements, each an int32 of at least `min`.
Result<Extent> heightAndWidth(const InferArgs &args, llvm::StringRef arg, int64_t min);
/// How often a window fits in `size` elements of the argument `arg`, padded on both sides; refuses
/// 0. The other extents come from heightAndWidth.
Result<int64_t> windowCount(llvm::StringRef arg, int64_t size, int64_t kernel, int64_t stride,
                            int64_t padding, int64_t dilation, bool ceilMode);
/// The result of pooling 'self' with the arguments 'kernel_size', 'stride', 'padding' and
/// 'ceil_mode'.
Status pool2d(const InferArgs &args, Results &results, Extent dilation);

} // namespace cgc::ir::rules
