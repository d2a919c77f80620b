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

namespace {
/// Reads an `int[]` argument of one or `spatial` elements, each an int32 of at least `min`.
Result<Dims> extents(const InferArgs &args, llvm::StringRef arg, unsigned spatial, int64_t min) {
  Dims values = args.ints(arg);
  if (values.size() != 1 && values.size() != spatial)
    return refuse("expected '" + arg + "' to have one or " + llvm::Twine(spatial) +
                  " elements, got " + toString(values));
  for (int64_t value : values)
    if (value < min || value > std::numeric_limits<int32_t>::max())
      return refuse("expected '" + arg + "' to be at least " + llvm::Twine(min) +
                    " and an int32, got " + toString(values));
  values.resize(spatial, values.front());
  return values;
}
} // namespace

Status convolution(const InferArgs &args, Results &results, unsigned spatial) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight");
  const bool flat = spatial == 1;
  if (input.rank() != spatial + 1 && input.rank() != spatial + 2)
    return mismatch("input", flat ? "[N, C, W] or [C, W]" : "[N, C, H, W] or [C, H, W]", input);
  const std::string kernel = flat ? "K]" : "KH, KW]";
  if (weight.rank() != spatial + 2)
    return mismatch("weight", "[O, C / groups, " + kernel, weight);
  if (!isFloating(input.dtype))
    return mismatch("input", "of a floating dtype", input);
  CGC_TRY(sameDType(args, "input", {"weight", "bias"}));
  CGC_ASSIGN_OR_RETURN(Dims stride, extents(args, "stride", spatial, 1));
  CGC_ASSIGN_OR_RETURN(Dims padding, extents(args, "padding", spatial, 0));
  CGC_ASSIGN_OR_RETURN(Dims dilation, extents(args, "dilation", spatial, 1));
  int64_t groups = args.integer("groups"), outputs = weight.sizes[0];
  llvm::ArrayRef<int64_t> image = llvm::ArrayRef(input.sizes).take_back(spatial + 1);
  if (groups < 1 || outputs % groups != 0)
    return mismatch("groups", "a divisor of " + llvm::Twine(outputs) + " output channels", groups);
  if (image[0] % groups != 0 || weight.sizes[1] != image[0] / groups)
    return mismatch("weight",
                    "[O, " + llvm::Twine(image[0]) + " / " + llvm::Twine(groups) + ", " + kernel +
                        ", as the channels of 'input'",
                    weight);
  if (image[0] < 1 || weight.numElements() == 0)
    return mismatch("weight", "nonempty", weight);
  if (!args.isNone("bias") && args.tensor("bias").sizes != Dims{outputs})
    return mismatch("bias", "[" + llvm::Twine(outputs) + "]", args.tensor("bias"));
  Dims sizes(llvm::ArrayRef(input.sizes).drop_back(spatial + 1));
  sizes.push_back(outputs);
  for (unsigned i = 0; i < spatial; ++i) {
    CGC_ASSIGN_OR_RETURN(int64_t count, windowCount("input", image[1 + i], weight.sizes[2 + i],
                                                    stride[i], padding[i], dilation[i], false));
    sizes.push_back(count);
  }
  return addDense(results, input.dtype, sizes);
}

Status upsample2d(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  if (self.rank() != 4 || !isFloating(self.dtype))
    return mismatch("self", "[N, C, H, W] of a floating dtype", self);
  const Dims size = args.ints("output_size");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    return refuse("expected 'output_size' to be two numbers of at least 1, got " + toString(size));
  for (llvm::StringRef name : {"scales_h", "scales_w"})
    if (!args.isNone(name) && !(args.number(name) >= 0x1p-20 && args.number(name) <= 0x1p20))
      return refuse("expected '" + name + "' to be between 2^-20 and 2^20");
  for (int64_t d : {1, 2, 3})
    if (self.sizes[d] == 0)
      return mismatch("self", "nonempty in all dimensions but the first", self);
  return addDense(results, self.dtype, {self.sizes[0], self.sizes[1], size[0], size[1]});
}

Status pad(const InferArgs &args, Results &results, unsigned spatial, bool mirrored) {
  const TensorType &self = args.tensor("self");
  if (self.rank() != spatial + 1 && self.rank() != spatial + 2)
    return mismatch("self", spatial == 1 ? "[N, C, W] or [C, W]" : "[N, C, H, W] or [C, H, W]",
                    self);
  if (self.numElements() == 0 || !isFloating(self.dtype))
    return mismatch("self", "nonempty and of a floating dtype", self);
  const Dims padding = args.ints("padding");
  if (padding.size() != 2 * spatial)
    return refuse("expected 'padding' to have " + llvm::Twine(2 * spatial) + " elements, got " +
                  toString(padding));
  Dims sizes = self.sizes;
  for (unsigned i = 0; i < padding.size(); ++i) {
    int64_t size = self.sizes[self.rank() - 1 - i / 2];
    if (mirrored && padding[i] >= size)
      return mismatch("padding", "less than the size " + llvm::Twine(size) + " on either side",
                      padding[i]);
    if (__builtin_add_overflow(sizes[self.rank() - 1 - i / 2], padding[i],
                               &sizes[self.rank() - 1 - i / 2]))
      return refuse("'padding' " + toString(padding) + " is too large");
  }
  for (int64_t size : sizes)
    if (size < 1)
      return refuse("'padding' " + toString(padding) + " crops more than there is of 'self' " +
                    toString(self.sizes));
  return addDense(results, self.dtype, sizes);
}

} // namespace cgc::ir::rules
