// References of pool_* and pool_backward_*.
#include "runtime/kernels/images/images.h"
#include "runtime/kernels/pointwise/reference_activations.h"
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

/// Calls `f(image, row, column, divisor)` for each window, with what its sum is divided by.
template <class F> void forWindows(const TensorView &image, std::span<const int64_t> ints, F f) {
  const PoolNumbers numbers = PoolNumbers::of(ints);
  const ConvWindows w = ConvWindows::of(ints);
  const int64_t height = image.sizes[1], width = image.sizes[2];
  /// The pixels of a window along one dimension: inside the image, or with the padding.
  const auto extent = [&](size_t d, int64_t at, int64_t size, bool padded) {
    const int64_t begin = at * w.stride[d] - w.padding[d], end = begin + w.kernel[d];
    return padded ? std::min(end, size + w.padding[d]) - begin
                  : std::min(end, size) - std::max(begin, int64_t{0});
  };
  for (int64_t i = 0; i < image.sizes[0]; ++i)
    for (int64_t row = 0; row < w.result[0]; ++row)
      for (int64_t column = 0; column < w.result[1]; ++column) {
        const bool padded = numbers.countsPadding != 0;
        const int64_t by = numbers.divisor != 0
                               ? numbers.divisor
                               : extent(0, row, height, padded) * extent(1, column, width, padded);
        f(i, row, column, by);
      }
}

/// Calls `f(pixel)` for each pixel of the image that is in a window, in order.
template <class F>
void forPixels(const TensorView &image, const ConvWindows &w, int64_t i, int64_t row,
               int64_t column, F f) {
  for (int64_t j = 0; j < w.kernel[0]; ++j)
    for (int64_t k = 0; k < w.kernel[1]; ++k) {
      const int64_t y = row * w.stride[0] - w.padding[0] + j * w.dilation[0],
                    x = column * w.stride[1] - w.padding[1] + k * w.dilation[1];
      if (y >= 0 && y < image.sizes[1] && x >= 0 && x < image.sizes[2])
        f((i * image.sizes[1] + y) * image.sizes[2] + x);
    }
}

bool isMaximum(const ReferenceArguments &a) {
  return PoolNumbers::of(a.ints).kind == int64_t(PoolKind::Max);
}

template <class T> void pool(const ReferenceArguments &a) {
  const TensorView &image = a.reads[0];
  const ConvWindows w = ConvWindows::of(a.ints);
  const bool isMax = isMaximum(a);
  const int64_t channels = image.sizes[3];
  T *to = resultOf<T>(a.writes[0]);
  std::vector<float> of(channels);
  forWindows(image, a.ints, [&](int64_t i, int64_t row, int64_t column, int64_t by) {
    std::ranges::fill(of, isMax ? -INFINITY : 0.0f);
    bool isEmpty = true;
    forPixels(image, w, i, row, column, [&](int64_t pixel) {
      isEmpty = false;
      const T *from = dataOf<T>(image) + pixel * channels;
      for (int64_t c = 0; c < channels; ++c)
        of[c] = isMax ? maxOrNan(of[c], toFloat(from[c])) : of[c] + toFloat(from[c]);
    });
    if (!isMax)
      for (float &value : of)
        value = isEmpty ? 0 : value / static_cast<float>(by);
    storeRow(of.data(), channels, to);
    to += channels;
  });
}

template <class T> void poolBackward(const ReferenceArguments &a) {
  const TensorView &image = a.reads[0];
  const ConvWindows w = ConvWindows::of(a.ints);
  const bool isMax = isMaximum(a);
  const int64_t channels = image.sizes[3],
                pixels = image.sizes[0] * image.sizes[1] * image.sizes[2];
  const T *grad = dataOf<T>(a.reads[1]);
  std::vector<float> sums(pixels * channels), most(channels);
  std::vector<int64_t> places(channels);
  forWindows(image, a.ints, [&](int64_t i, int64_t row, int64_t column, int64_t by) {
    std::ranges::fill(most, -INFINITY);
    std::ranges::fill(places, -1);
    forPixels(image, w, i, row, column, [&](int64_t pixel) {
      for (int64_t c = 0; c < channels; ++c) {
        const float value = toFloat(dataOf<T>(image)[pixel * channels + c]);
        if (!isMax) {
          sums[pixel * channels + c] += toFloat(grad[c]) / static_cast<float>(by);
        } else if (places[c] < 0 || value > most[c] || std::isnan(value)) {
          most[c] = value;
          places[c] = pixel;
        }
      }
    });
    for (int64_t c = 0; isMax && c < channels; ++c)
      if (places[c] >= 0)
        sums[places[c] * channels + c] += toFloat(grad[c]);
    grad += channels;
  });
  storeRow(sums.data(), pixels * channels, resultOf<T>(a.writes[0]));
}

} // namespace

CGC_FLOAT_REFERENCES(pool, pool)
CGC_FLOAT_REFERENCES(pool_backward, poolBackward)

} // namespace cgc::reference
