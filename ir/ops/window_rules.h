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

/// Adds the result of a convolution over the last `spatial` dimensions of 'input', without
/// transposition: [N, C, ...] (or without N), 'weight' [O, C / groups, ...], 'bias' [O].
Status convolution(const InferArgs &args, Results &results, unsigned spatial);
/// Adds [N, C, output_size] for 'self' [N, C, H, W].
Status upsample2d(const InferArgs &args, Results &results);
/// Adds 'self' padded by 'padding' in its last `spatial` dimensions. `mirrored` paddings must be
/// smaller than the dimension.
Status pad(const InferArgs &args, Results &results, unsigned spatial, bool mirrored);
template <unsigned kSpatial> Status reflectionPad(const InferArgs &args, Results &results) {
  return pad(args, results, kSpatial, /*mirrored=*/true);
}
template <unsigned kSpatial> Status replicationPad(const InferArgs &args, Results &results) {
  return pad(args, results, kSpatial, /*mirrored=*/false);
}

} // namespace cgc::ir::rules
