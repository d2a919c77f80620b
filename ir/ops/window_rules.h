// window_rules: the type rules of ops on images: the windows of pooling, resampling, padding.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Reads an `int[]` argument of one element, which counts for each dimension, or of `spatial`. Each
/// must be an int32 of at least `min`.
Result<Dims> extents(const InferArgs &args, llvm::StringRef arg, unsigned spatial, int64_t min);
/// Returns "[N, C, H, W] or [C, H, W]" for two spatial dimensions.
std::string imageSizes(unsigned spatial);
/// Returns how many windows fit along `size` elements of the argument `arg`, padded on both sides.
/// Refuses 0 windows. Take the other extents from extents().
Result<int64_t> windowCount(llvm::StringRef arg, int64_t size, int64_t kernel, int64_t stride,
                            int64_t padding, int64_t dilation, bool ceilMode);
/// The windows of a pool, with an element for each spatial dimension.
struct PoolWindows {
  Dims kernel, stride, padding;
};
/// Reads 'kernel_size', 'stride', which is the kernel's size if it is empty, and 'padding'. Refuses
/// a padding of more than half of the kernel.
Result<PoolWindows> poolWindows(const InferArgs &args, unsigned spatial);
/// Adds the result of pooling the last `spatial` dimensions of 'self' with the arguments
/// 'kernel_size', 'stride', 'padding' and 'ceil_mode'; `dilation` has an element for each.
Status pool(const InferArgs &args, Results &results, unsigned spatial, const Dims &dilation);
template <unsigned kSpatial> Status maxPool(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  if (self.dtype == DType::Bool)
    return mismatch("self", "of a numeric dtype", self);
  CGC_ASSIGN_OR_RETURN(Dims dilation, extents(args, "dilation", kSpatial, 1));
  return pool(args, results, kSpatial, dilation);
}
/// Adds the averages of windows; refuses a 'divisor_override' of 0.
template <unsigned kSpatial> Status averagePool(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  if (!isFloating(self.dtype))
    return mismatch("self", "of a floating dtype", self);
  if (!args.isNone("divisor_override") && args.integer("divisor_override") == 0)
    return mismatch("divisor_override", "other than 0", 0);
  return pool(args, results, kSpatial, Dims(kSpatial, 1));
}
/// The sizes [N, OH, OW, C] of the averages or maxima of 'input' [N, H, W, C], by the arguments of
/// cgc.pool2d.
Result<Dims> imagePoolSizes(const InferArgs &args);
/// Adds the averages of 'self' over windows chosen such that its last `spatial` dimensions become
/// 'output_size'.
Status adaptivePool(const InferArgs &args, Results &results, unsigned spatial);

/// The columns that im2col makes of an image's windows.
struct Columns {
  int64_t rows;  ///< For each channel: the elements of the kernel.
  int64_t count; ///< The windows.
};
/// Returns the columns of an image whose last two sizes are those of `sizes`, from the arguments
/// 'kernel_size', 'dilation', 'padding' and 'stride'. `arg` names the image in messages.
Result<Columns> columnsOf(const InferArgs &args, llvm::StringRef arg,
                          llvm::ArrayRef<int64_t> sizes);

/// The argument with the scale of spatial dimension `i` of an image that is resampled.
llvm::StringRef scaleName(unsigned spatial, unsigned i);
/// Adds [N, C, output_size] for 'self' [N, C, H, W], or with other `spatial` dimensions.
Status upsample(const InferArgs &args, Results &results, unsigned spatial);
template <unsigned kSpatial> Status upsample(const InferArgs &args, Results &results) {
  return upsample(args, results, kSpatial);
}
/// The same for two with filters that grow with the reduction. A scale must not map a result pixel
/// to outside of the image: LibTorch's kernels read there.
Status upsampleAntialiased2d(const InferArgs &args, Results &results);
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
