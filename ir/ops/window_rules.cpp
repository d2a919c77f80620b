// window_rules: the type rules of convolution and pooling windows.
#include "ir/ops/window_rules.h"

#include <limits>

namespace cgc::ir::rules {

Result<Extent> heightAndWidth(const InferArgs &args, llvm::StringRef arg, int64_t min) {
  // Larger extents would overflow the window arithmetic and have no use.
  constexpr int64_t max = std::numeric_limits<int32_t>::max();
  Dims values = args.ints(arg);
  if (values.size() != 1 && values.size() != 2)
    return refuse("expected '" + arg + "' to have one or two elements, got " + toString(values));
  for (int64_t value : values)
    if (value < min || value > max)
      return refuse("expected '" + arg + "' to be at least " + llvm::Twine(min) +
                    " and an int32, got " + toString(values));
  return Extent(values.front(), values.back());
}

Result<int64_t> windowCount(llvm::StringRef arg, int64_t size, int64_t kernel, int64_t stride,
                            int64_t padding, int64_t dilation, bool ceilMode) {
  constexpr int64_t max = std::numeric_limits<int32_t>::max();
  int64_t extent; // All factors are int32 values, so the computation below cannot overflow.
  if (size > max || __builtin_mul_overflow(dilation, kernel - 1, &extent))
    return refuse("'" + arg + "' has a size that is too large: " + llvm::Twine(size));
  // Counts window starts; rounded up, the last window may extend past the padding.
  int64_t room = size + 2 * padding - extent - 1 + (ceilMode ? stride - 1 : 0);
  int64_t count = room < 0 ? 0 : room / stride + 1;
  // The last window must begin inside the input or its left padding.
  if (ceilMode && (count - 1) * stride >= size + padding)
    --count;
  if (count < 1)
    return refuse("the window of " + llvm::Twine(kernel) + " does not fit in '" + arg +
                  "' of size " + llvm::Twine(size) + " with padding " + llvm::Twine(padding));
  return count;
}

namespace {
/// Checks that 'self' is [N, C, H, W] or [C, H, W], and nonempty in all dimensions but N.
Status checkImage(const InferArgs &args) {
  const TensorType &self = args.tensor("self");
  if (self.rank() != 3 && self.rank() != 4)
    return mismatch("self", "[N, C, H, W] or [C, H, W]", self);
  for (int64_t size : llvm::ArrayRef(self.sizes).take_back(3))
    if (size == 0)
      return mismatch("self", "nonempty but for its batch", self);
  return Status::ok();
}
} // namespace

Status pool2d(const InferArgs &args, Results &results, Extent dilation) {
  CGC_TRY(checkImage(args));
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(Extent kernel, heightAndWidth(args, "kernel_size", 1));
  Extent stride = kernel;
  if (!args.ints("stride").empty()) {
    CGC_ASSIGN_OR_RETURN(stride, heightAndWidth(args, "stride", 1));
  }
  CGC_ASSIGN_OR_RETURN(Extent padding, heightAndWidth(args, "padding", 0));
  if (padding.first > kernel.first / 2 || padding.second > kernel.second / 2)
    return mismatch("padding", "at most half of 'kernel_size'",
                    std::max(padding.first, padding.second));
  bool ceilMode = args.boolean("ceil_mode");
  auto image = llvm::ArrayRef(self.sizes).take_back(2);
  CGC_ASSIGN_OR_RETURN(int64_t height, windowCount("self", image[0], kernel.first, stride.first,
                                                   padding.first, dilation.first, ceilMode));
  CGC_ASSIGN_OR_RETURN(int64_t width, windowCount("self", image[1], kernel.second, stride.second,
                                                  padding.second, dilation.second, ceilMode));
  Dims sizes(llvm::ArrayRef(self.sizes).drop_back(2));
  sizes.append({height, width});
  return addDense(results, self.dtype, sizes);
}

} // namespace cgc::ir::rules
