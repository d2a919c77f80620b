// window_rules: the type rules of pooling, resampling and padding of images.
#include "ir/ops/window_rules.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

namespace cgc::ir::rules {

Result<Dims> extents(const InferArgs &args, llvm::StringRef arg, unsigned spatial, int64_t min) {
  // Larger extents would overflow the window arithmetic and have no use.
  constexpr int64_t max = std::numeric_limits<int32_t>::max();
  Dims values = args.ints(arg);
  if (values.size() != 1 && values.size() != spatial)
    return refuse("expected '" + arg + "' to have 1 or " + llvm::Twine(spatial) +
                  " elements, got " + toString(values));
  for (int64_t value : values)
    if (value < min || value > max)
      return refuse("expected '" + arg + "' to be at least " + llvm::Twine(min) +
                    " and an int32, got " + toString(values));
  values.resize(spatial, values.front());
  return values;
}

std::string imageSizes(unsigned spatial) {
  const std::string image = spatial == 1 ? "C, W]" : spatial == 2 ? "C, H, W]" : "C, D, H, W]";
  return "[N, " + image + " or [" + image;
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

Result<PoolWindows> poolWindows(const InferArgs &args, unsigned spatial) {
  PoolWindows windows;
  CGC_ASSIGN_OR_RETURN(windows.kernel, extents(args, "kernel_size", spatial, 1));
  windows.stride = windows.kernel;
  if (!args.ints("stride").empty()) {
    CGC_ASSIGN_OR_RETURN(windows.stride, extents(args, "stride", spatial, 1));
  }
  CGC_ASSIGN_OR_RETURN(windows.padding, extents(args, "padding", spatial, 0));
  for (unsigned i = 0; i < spatial; ++i)
    if (windows.padding[i] > windows.kernel[i] / 2)
      return mismatch("padding", "at most half of 'kernel_size'", windows.padding[i]);
  return windows;
}

Status pool(const InferArgs &args, Results &results, unsigned spatial, const Dims &dilation) {
  const TensorType &self = args.tensor("self");
  if (self.rank() != spatial + 1 && self.rank() != spatial + 2)
    return mismatch("self", imageSizes(spatial), self);
  for (int64_t size : llvm::ArrayRef(self.sizes).take_back(spatial + 1))
    if (size == 0)
      return mismatch("self", "nonempty but for its batch", self);
  CGC_ASSIGN_OR_RETURN(const PoolWindows windows, poolWindows(args, spatial));
  const auto &[kernel, stride, padding] = windows;
  Dims sizes = self.sizes;
  for (unsigned i = 0; i < spatial; ++i) {
    int64_t &size = sizes[self.rank() - spatial + i];
    CGC_ASSIGN_OR_RETURN(size, windowCount("self", size, kernel[i], stride[i], padding[i],
                                           dilation[i], args.boolean("ceil_mode")));
  }
  return addDense(results, self.dtype, sizes);
}

Result<Dims> imagePoolSizes(const InferArgs &args) {
  const TensorType &input = args.tensor("input");
  if (input.rank() != 4 || !isFloating(input.dtype) || input.sizes[3] < 1)
    return mismatch("input", "[N, H, W, C] of a floating dtype", input);
  const llvm::StringRef kind = args.str("kind");
  if (kind != "average" && kind != "max")
    return refuse("expected 'kind' to be average or max, got \"" + kind + "\"");
  if (!args.isNone("divisor") && args.integer("divisor") == 0)
    return mismatch("divisor", "other than 0", 0);
  CGC_ASSIGN_OR_RETURN(const PoolWindows windows, poolWindows(args, 2));
  CGC_ASSIGN_OR_RETURN(const Dims dilation, extents(args, "dilation", 2, 1));
  if (kind == "average" && dilation != Dims{1, 1})
    return refuse("expected 'dilation' to be [1,1] for an average, got " + toString(dilation));
  Dims sizes = {input.sizes[0]};
  for (unsigned i = 0; i < 2; ++i) {
    CGC_ASSIGN_OR_RETURN(const int64_t count,
                         windowCount("input", input.sizes[1 + i], windows.kernel[i],
                                     windows.stride[i], windows.padding[i], dilation[i],
                                     args.boolean("ceil_mode")));
    sizes.push_back(count);
  }
  sizes.push_back(input.sizes[3]);
  return sizes;
}

Status adaptivePool(const InferArgs &args, Results &results, unsigned spatial) {
  const TensorType &self = args.tensor("self");
  if (self.rank() != spatial + 1 && self.rank() != spatial + 2)
    return mismatch("self", imageSizes(spatial), self);
  // As in LibTorch, only a pool of two dimensions takes an image without channels.
  if (llvm::is_contained(llvm::ArrayRef(self.sizes).take_back(spatial == 2 ? 2 : spatial + 1), 0))
    return mismatch("self", "nonempty but for its batch", self);
  if (!isFloating(self.dtype))
    return mismatch("self", "of a floating dtype", self);
  const Dims output = args.ints("output_size");
  if (output.size() != spatial)
    return refuse("expected 'output_size' to have " + llvm::Twine(spatial) + " elements, got " +
                  toString(output));
  Dims sizes(llvm::ArrayRef(self.sizes).drop_back(spatial));
  sizes.append(output);
  return addDense(results, self.dtype, sizes);
}

Result<Columns> columnsOf(const InferArgs &args, llvm::StringRef arg,
                          llvm::ArrayRef<int64_t> sizes) {
  for (llvm::StringRef name : {"kernel_size", "dilation", "padding", "stride"})
    if (args.ints(name).size() != 2)
      return refuse("expected '" + name + "' to have two elements, got " +
                    toString(args.ints(name)));
  CGC_ASSIGN_OR_RETURN(Dims kernel, extents(args, "kernel_size", 2, 1));
  CGC_ASSIGN_OR_RETURN(Dims dilation, extents(args, "dilation", 2, 1));
  CGC_ASSIGN_OR_RETURN(Dims padding, extents(args, "padding", 2, 0));
  CGC_ASSIGN_OR_RETURN(Dims stride, extents(args, "stride", 2, 1));
  Columns columns{1, 1};
  for (unsigned i : {0, 1}) {
    CGC_ASSIGN_OR_RETURN(int64_t count, windowCount(arg, sizes.take_back(2)[i], kernel[i],
                                                    stride[i], padding[i], dilation[i], false));
    columns.rows *= kernel[i]; // Factors are int32 values.
    columns.count *= count;
  }
  return columns;
}

llvm::StringRef scaleName(unsigned spatial, unsigned i) {
  constexpr llvm::StringRef kNames[] = {"scales_d", "scales_h", "scales_w"};
  return spatial == 1 ? llvm::StringRef("scales") : kNames[3 - spatial + i];
}

Status upsample(const InferArgs &args, Results &results, unsigned spatial) {
  constexpr llvm::StringRef kImages[] = {"[N, C, W]", "[N, C, H, W]", "[N, C, D, H, W]"};
  constexpr llvm::StringRef kCounts[] = {"one number", "two numbers", "three numbers"};
  const TensorType &self = args.tensor("self");
  if (self.rank() != spatial + 2 || !isFloating(self.dtype))
    return mismatch("self", kImages[spatial - 1] + " of a floating dtype", self);
  const Dims size = args.ints("output_size");
  if (size.size() != spatial || llvm::any_of(size, [](int64_t extent) { return extent < 1; }))
    return refuse("expected 'output_size' to be " + kCounts[spatial - 1] + " of at least 1, got " +
                  toString(size));
  for (unsigned i = 0; i < spatial; ++i) {
    const llvm::StringRef name = scaleName(spatial, i);
    if (!args.isNone(name) && !(args.number(name) >= 0x1p-20 && args.number(name) <= 0x1p20))
      return refuse("expected '" + name + "' to be between 2^-20 and 2^20");
  }
  if (llvm::is_contained(llvm::ArrayRef(self.sizes).drop_front(), 0))
    return mismatch("self", "nonempty in all dimensions but the first", self);
  Dims sizes(self.sizes.begin(), self.sizes.begin() + 2);
  sizes.append(size);
  return addDense(results, self.dtype, sizes);
}

Status upsampleAntialiased2d(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_TRY(upsample(args, results, 2));
  for (auto [name, d] : {std::pair("scales_h", 2), std::pair("scales_w", 3)})
    if (!args.isNone(name) && static_cast<double>(results.back().type.sizes[d]) >
                                  static_cast<double>(self.sizes[d]) * args.number(name))
      return refuse("expected '" + llvm::Twine(name) +
                    "' to be at least the quotient of the sizes");
  return Status::ok();
}

Status pad(const InferArgs &args, Results &results, unsigned spatial, bool mirrored) {
  const TensorType &self = args.tensor("self");
  if (self.rank() != spatial + 1 && self.rank() != spatial + 2)
    return mismatch("self", imageSizes(spatial), self);
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
