// window_rules: the extents of windows that slide over an image, for convolution and pooling.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Height and width.
using Extent = std::pair<int64_t, int64_t>;

/// Reads an `int[]` argument of one or two elements, each an int32 of at least `min`.
Result<Extent> heightAndWidth(const InferArgs &args, llvm::StringRef arg, int64_t min);
/// Returns how many windows fit along `size` elements of the argument `arg`, padded on both sides.
/// Refuses 0 windows. Take the other extents from heightAndWidth.
Result<int64_t> windowCount(llvm::StringRef arg, int64_t size, int64_t kernel, int64_t stride,
                            int64_t padding, int64_t dilation, bool ceilMode);
/// Adds the result of pooling 'self' with the arguments 'kernel_size', 'stride', 'padding' and
/// 'ceil_mode'.
Status pool2d(const InferArgs &args, Results &results, Extent dilation);

} // namespace cgc::ir::rules
