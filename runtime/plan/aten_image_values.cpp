// Checks of ATen arguments by value: the ops on images.
#include "runtime/plan/aten_call_args.h"

#include <utility>

namespace cgc::aten_values {
namespace {

/// Arguments: self, pad, ... `pad` has two numbers for each dimension, from the last dimension on.
Status checkPad(const Args &args) {
  const TensorRef *self = args.tensor(0);
  const auto *pad = args.get<Sizes>(1);
  if (!self || !pad || pad->size() % 2 != 0 || pad->size() / 2 > self->sizes.size())
    return refuse("'pad' has to be two numbers for each dimension that is padded");
  Sizes sizes = self->sizes;
  for (size_t i = 0; i < pad->size(); ++i) {
    int64_t &size = sizes[sizes.size() - 1 - i / 2];
    if (__builtin_add_overflow(size, (*pad)[i], &size))
      return refuse("'pad' is too large");
  }
  return args.expectResult(sizes);
}

/// Arguments: self, output_size.
template <size_t kSpatial> Status checkAdaptivePool(const Args &args) {
  const TensorRef *self = args.tensor(0);
  if (!self || self->sizes.size() < kSpatial)
    return refuse("its image has fewer dimensions than 'output_size'");
  Sizes sizes = self->sizes;
  for (size_t i = 0; i < kSpatial; ++i) {
    const auto size = args.element(1, i);
    if (!size)
      return refuse("'output_size' has to have an element for each dimension of its image");
    sizes[sizes.size() - kSpatial + i] = *size;
  }
  return args.expectResult(sizes);
}

/// The number of windows along one dimension of an image; std::nullopt if an argument is out of
/// range.
std::optional<int64_t> windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                               int64_t dilation, bool ceilMode = false) {
  constexpr int64_t kMost = int64_t(1) << 31;
  const auto within = [](int64_t value, int64_t least) { return value >= least && value <= kMost; };
  if (!within(size, 0) || !within(kernel, 1) || !within(stride, 1) || !within(padding, 0) ||
      !within(dilation, 1))
    return std::nullopt;
  const int64_t room =
      size + 2 * padding - dilation * (kernel - 1) - 1 + (ceilMode ? stride - 1 : 0);
  if (room < 0)
    return std::nullopt;
  // Rounded up, the last window must still begin inside the image or its left padding.
  const int64_t count = room / stride + 1;
  return ceilMode && (count - 1) * stride >= size + padding ? count - 1 : count;
}

/// Arguments: self, kernel_size, stride, padding, (dilation,) ceil_mode, ... The kernels write
/// dense results, and max_pool3d_with_indices has no check of the results' sizes.
template <bool kDilated> Status checkPool3d(const Args &args) {
  const TensorRef *self = args.tensor(0);
  const auto *strides = args.get<Sizes>(2);
  const bool *ceilMode = args.get<bool>(kDilated ? 5 : 4);
  if (!self || self->sizes.size() < 4 || !strides || !ceilMode)
    return refuse("its image, stride or ceil_mode is none");
  Sizes sizes = self->sizes;
  for (size_t i = 0; i < 3; ++i) {
    int64_t &size = sizes[sizes.size() - 3 + i];
    const auto kernel = args.element(1, i), stride = args.element(strides->empty() ? 1 : 2, i),
               padding = args.element(3, i),
               dilation = kDilated ? args.element(4, i) : std::optional<int64_t>(1);
    const auto count = kernel && stride && padding && dilation
                           ? windows(size, *kernel, *stride, *padding, *dilation, *ceilMode)
                           : std::nullopt;
    if (!count)
      return refuse("its kernel, stride, padding or dilation is out of range for its image");
    size = *count;
  }
  CGC_TRY(args.expectDenseResult());
  return args.expectResult(sizes);
}

/// Arguments: input, weight, bias, stride, padding, dilation, groups.
template <size_t kSpatial> Status checkConvolution(const Args &args) {
  const TensorRef *input = args.tensor(0), *weight = args.tensor(1);
  const int64_t *groups = args.get<int64_t>(6);
  if (!input || input->sizes.size() < kSpatial + 1 || !weight ||
      weight->sizes.size() != kSpatial + 2 || !groups || *groups < 1)
    return refuse("its image, weight or number of groups is none");
  Sizes sizes = input->sizes;
  sizes[sizes.size() - kSpatial - 1] = weight->sizes[0];
  for (size_t i = 0; i < kSpatial; ++i) {
    const auto stride = args.element(3, i), padding = args.element(4, i),
               dilation = args.element(5, i);
    int64_t &size = sizes[sizes.size() - kSpatial + i];
    const auto count = stride && padding && dilation
                           ? windows(size, weight->sizes[2 + i], *stride, *padding, *dilation)
                           : std::nullopt;
    if (!count)
      return refuse("its stride, padding or dilation is out of range for its image");
    size = *count;
  }
  return args.expectResult(sizes);
}

/// Arguments: input, weight, bias, stride, padding, output_padding, groups, dilation.
template <size_t kSpatial> Status checkTransposedConvolution(const Args &args) {
  const TensorRef *input = args.tensor(0), *weight = args.tensor(1);
  const int64_t *groups = args.get<int64_t>(6);
  constexpr int64_t kMost = int64_t(1) << 20; // No product below overflows.
  if (!input || input->sizes.size() < kSpatial + 1 || !weight ||
      weight->sizes.size() != kSpatial + 2 || !groups || *groups < 1 || *groups > kMost ||
      weight->sizes[1] > kMost)
    return refuse("its image, weight or number of groups is none");
  Sizes sizes = input->sizes;
  sizes[sizes.size() - kSpatial - 1] = weight->sizes[1] * *groups;
  for (size_t i = 0; i < kSpatial; ++i) {
    const auto stride = args.element(3, i), padding = args.element(4, i),
               extra = args.element(5, i), dilation = args.element(7, i);
    int64_t &size = sizes[sizes.size() - kSpatial + i];
    const auto within = [](std::optional<int64_t> value, int64_t least) {
      return value && *value >= least && *value <= kMost;
    };
    if (!within(stride, 1) || !within(padding, 0) || !within(extra, 0) || !within(dilation, 1) ||
        !within(size, 1) || !within(weight->sizes[2 + i], 1))
      return refuse("its stride, padding or dilation is out of range for its image");
    size =
        (size - 1) * *stride - 2 * *padding + *dilation * (weight->sizes[2 + i] - 1) + *extra + 1;
  }
  return args.expectResult(sizes);
}

/// Arguments: grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed,
/// output_padding, groups, output_mask. Not every kernel of LibTorch checks the sizes of the
/// gradient.
Status checkConvolutionBackward(const Args &args) {
  const TensorRef *grad = args.tensor(0), *input = args.tensor(1), *weight = args.tensor(2);
  const bool *isTransposed = args.get<bool>(7);
  const int64_t *groups = args.get<int64_t>(9);
  constexpr int64_t kMost = int64_t(1) << 20; // No product below overflows.
  if (!grad || !input || !weight || !isTransposed || !groups || *groups < 1 || *groups > kMost ||
      input->sizes.size() < 3 || input->sizes.size() > 5 ||
      weight->sizes.size() != input->sizes.size() || weight->sizes[0] > kMost ||
      weight->sizes[1] > kMost)
    return refuse("its gradient, image, weight or number of groups is none");
  const int64_t grouped = weight->sizes[1] * *groups;
  if (input->sizes[1] != (*isTransposed ? weight->sizes[0] : grouped) ||
      weight->sizes[0] % *groups != 0)
    return refuse("its image has other channels than its weight");
  const Sizes channels = {*isTransposed ? grouped : weight->sizes[0]};
  Sizes sizes = input->sizes;
  sizes[1] = channels[0];
  const size_t spatial = sizes.size() - 2;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t &size = sizes[2 + i];
    const int64_t kernel = weight->sizes[2 + i];
    const auto stride = args.element(4, i), padding = args.element(5, i),
               dilation = args.element(6, i), extra = args.element(8, i);
    const auto within = [](std::optional<int64_t> value, int64_t least) {
      return value && *value >= least && *value <= kMost;
    };
    if (!within(stride, 1) || !within(padding, 0) || !within(dilation, 1) || !within(extra, 0) ||
        !within(size, 1) || !within(kernel, 1))
      return refuse("its stride, padding or dilation is out of range for its image");
    size = *isTransposed
               ? (size - 1) * *stride - 2 * *padding + *dilation * (kernel - 1) + *extra + 1
               : windows(size, kernel, *stride, *padding, *dilation).value_or(-1);
  }
  if (grad->sizes != sizes)
    return refuse("its gradient is " + text(grad->sizes) + " instead of " + text(sizes));
  if (const auto *bias = args.get<Sizes>(3); bias && *bias != channels)
    return refuse("its bias has to have an element for each channel of the gradient");
  return args.expectResult(input->sizes);
}

/// Arguments: grad_output, self, ... The kernels write the gradient as if it were dense.
Status checkPoolBackward(const Args &args) {
  const TensorRef *self = args.tensor(1);
  if (!self)
    return refuse("its image is none");
  CGC_TRY(args.expectDenseResult());
  return args.expectResult(self->sizes);
}

/// Arguments: self, output_size, ..., scales_h, scales_w. LibTorch multiplies coordinates by the
/// inverse of a scale and converts the product to an integer, which indexes the image.
template <size_t kFirstScale> Status checkUpsample(const Args &args) {
  for (const size_t i : {kFirstScale, kFirstScale + 1})
    if (const auto scale = args.number(i); scale && !(*scale >= 0x1p-20 && *scale <= 0x1p20))
      return refuse("its scales have to be between 2^-20 and 2^20");
  const TensorRef *self = args.tensor(0);
  const auto height = args.element(1, 0), width = args.element(1, 1);
  if (!self || self->sizes.size() != 4 || !height || !width)
    return refuse("its image has to be [N, C, H, W], and 'output_size' a height and a width");
  return args.expectResult({self->sizes[0], self->sizes[1], *height, *width});
}

/// The same for filters that grow with the reduction. Their kernels read the pixel to which a scale
/// maps a result's pixel even if it is outside of the image.
Status checkUpsampleAntialiased(const Args &args) {
  CGC_TRY(checkUpsample<3>(args));
  for (const size_t i : {0, 1})
    if (const auto scale = args.number(3 + i);
        scale && double(*args.element(1, i)) > double(args.tensor(0)->sizes[2 + i]) * *scale)
      return refuse("a scale maps its result to outside of its image");
  return args.expectDenseResult();
}

/// Arguments: input, grid, interpolation_mode, padding_mode, align_corners. LibTorch leaves its
/// result uninitialized for a mode that it does not know.
Status checkGridSampler(const Args &args) {
  const TensorRef *input = args.tensor(0), *grid = args.tensor(1);
  if (!input || !grid || input->sizes.size() != 4 || grid->sizes.size() != 4)
    return refuse("its image and its grid have to have four dimensions");
  for (const size_t i : {2, 3})
    if (const auto *mode = args.get<int64_t>(i); !mode || *mode < 0 || *mode > 2)
      return refuse("its modes have to be 0, 1 or 2");
  return args.expectResult({input->sizes[0], input->sizes[1], grid->sizes[1], grid->sizes[2]});
}

/// The pixels that an argument pair of two-element lists has, as windows of an image.
std::optional<Sizes> columns(const Args &args, size_t firstArg, int64_t height, int64_t width) {
  Sizes result = {1, 1}; // The elements of a window, and the windows.
  const int64_t image[] = {height, width};
  for (const size_t i : {0, 1}) {
    const auto kernel = args.element(firstArg, i), dilation = args.element(firstArg + 1, i),
               padding = args.element(firstArg + 2, i), stride = args.element(firstArg + 3, i);
    const auto count = kernel && dilation && padding && stride
                           ? windows(image[i], *kernel, *stride, *padding, *dilation)
                           : std::nullopt;
    if (!count || __builtin_mul_overflow(result[0], *kernel, &result[0]) ||
        __builtin_mul_overflow(result[1], *count, &result[1]))
      return std::nullopt;
  }
  return result;
}

/// Arguments: self, kernel_size, dilation, padding, stride.
Status checkIm2col(const Args &args) {
  const TensorRef *self = args.tensor(0);
  if (!self || (self->sizes.size() != 3 && self->sizes.size() != 4))
    return refuse("its image has to be [N, C, H, W] or [C, H, W]");
  Sizes sizes(self->sizes.begin(), self->sizes.end() - 2);
  const auto windows = columns(args, 1, *(self->sizes.end() - 2), self->sizes.back());
  if (!windows || __builtin_mul_overflow(sizes.back(), (*windows)[0], &sizes.back()))
    return refuse("its kernel, dilation, padding or stride is out of range for its image");
  sizes.push_back((*windows)[1]);
  return args.expectResult(sizes);
}

/// Arguments: self, output_size, kernel_size, dilation, padding, stride.
Status checkCol2im(const Args &args) {
  const TensorRef *self = args.tensor(0);
  const auto height = args.element(1, 0), width = args.element(1, 1);
  if (!self || (self->sizes.size() != 2 && self->sizes.size() != 3) || !height || !width)
    return refuse("its columns have to be matrices, and 'output_size' a height and a width");
  const auto windows = columns(args, 2, *height, *width);
  Sizes sizes(self->sizes.begin(), self->sizes.end() - 1);
  if (!windows || self->sizes.back() != (*windows)[1] || sizes.back() % (*windows)[0] != 0)
    return refuse("its columns are not the windows of an image of 'output_size'");
  sizes.back() /= (*windows)[0];
  sizes.insert(sizes.end(), {*height, *width});
  return args.expectResult(sizes);
}

} // namespace

std::vector<Row> imageRows() {
  return {
      {"aten::_upsample_bicubic2d_aa", {"", "out"}, &checkUpsampleAntialiased},
      {"aten::_upsample_bilinear2d_aa", {"", "out"}, &checkUpsampleAntialiased},
      {"aten::adaptive_avg_pool2d", {"", "out"}, &checkAdaptivePool<2>},
      {"aten::adaptive_avg_pool3d", {""}, &checkAdaptivePool<3>},
      {"aten::avg_pool2d_backward", {"", "grad_input"}, &checkPoolBackward},
      {"aten::avg_pool3d", {"", "out"}, &checkPool3d<false>},
      {"aten::col2im", {""}, &checkCol2im},
      {"aten::constant_pad_nd", {"", "out"}, &checkPad},
      {"aten::conv1d", {""}, &checkConvolution<1>},
      {"aten::conv2d", {""}, &checkConvolution<2>},
      {"aten::conv3d", {""}, &checkConvolution<3>},
      {"aten::conv_transpose2d", {"input"}, &checkTransposedConvolution<2>},
      {"aten::conv_transpose3d", {"input"}, &checkTransposedConvolution<3>},
      {"aten::convolution_backward", {""}, &checkConvolutionBackward},
      {"aten::grid_sampler_2d", {""}, &checkGridSampler},
      {"aten::im2col", {""}, &checkIm2col},
      {"aten::max_pool3d_with_indices", {"", "out"}, &checkPool3d<true>},
      {"aten::upsample_bicubic2d", {"", "out"}, &checkUpsample<3>},
      {"aten::upsample_bilinear2d", {"", "out"}, &checkUpsample<3>},
      {"aten::upsample_nearest2d", {"", "out"}, &checkUpsample<2>},
  };
}

} // namespace cgc::aten_values
