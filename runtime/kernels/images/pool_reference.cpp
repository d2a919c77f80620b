// References of pool_*.
#include "runtime/kernels/images/images.h"
#include "runtime/kernels/pointwise/reference_activations.h"
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

template <class T> void pool(const ReferenceArguments &a) {
  const TensorView &image = a.reads[0];
  const PoolNumbers numbers = PoolNumbers::of(a.ints);
  const ConvWindows w = ConvWindows::of(a.ints);
  const bool isMax = numbers.kind == int64_t(PoolKind::Max);
  const int64_t height = image.sizes[1], width = image.sizes[2], channels = image.sizes[3];
  T *to = resultOf<T>(a.writes[0]);
  std::vector<float> of(channels);
  for (int64_t i = 0; i < image.sizes[0]; ++i)
    for (int64_t row = 0; row < w.result[0]; ++row)
      for (int64_t column = 0; column < w.result[1]; ++column, to += channels) {
        const int64_t top = row * w.stride[0] - w.padding[0],
                      left = column * w.stride[1] - w.padding[1];
        std::ranges::fill(of, isMax ? -INFINITY : 0.0f);
        int64_t count = 0;
        for (int64_t j = 0; j < w.kernel[0]; ++j)
          for (int64_t k = 0; k < w.kernel[1]; ++k) {
            const int64_t y = top + j * w.dilation[0], x = left + k * w.dilation[1];
            if (y < 0 || y >= height || x < 0 || x >= width)
              continue;
            ++count;
            const T *from = dataOf<T>(image) + ((i * height + y) * width + x) * channels;
            for (int64_t c = 0; c < channels; ++c)
              of[c] = isMax ? maxOrNan(of[c], toFloat(from[c])) : of[c] + toFloat(from[c]);
          }
        if (!isMax) {
          const int64_t padded = (std::min(top + w.kernel[0], height + w.padding[0]) - top) *
                                 (std::min(left + w.kernel[1], width + w.padding[1]) - left);
          const int64_t by = numbers.divisor != 0         ? numbers.divisor
                             : numbers.countsPadding != 0 ? padded
                                                          : count;
          for (float &value : of)
            value = count == 0 ? 0 : value / static_cast<float>(by);
        }
        storeRow(of.data(), channels, to);
      }
}

} // namespace

CGC_FLOAT_REFERENCES(pool, pool)

} // namespace cgc::reference
