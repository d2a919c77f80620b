// References of depthwise_conv_*.
#include "runtime/kernels/images/images.h"
#include "runtime/kernels/pointwise/reference_activations.h"
#include "runtime/kernels/reference_elements.h"
#include "runtime/kernels/rowwise/reference_statistics.h"

namespace cgc::reference {
namespace {

template <class T> void depthwiseConv(const ReferenceArguments &a) {
  const TensorView &image = a.reads[0], &weight = a.reads[1], &bias = a.reads[2],
                   &residual = a.reads[3];
  const ConvWindows w = ConvWindows::of(a.ints);
  const int64_t height = image.sizes[1], width = image.sizes[2], channels = image.sizes[3];
  const int64_t results = weight.sizes[2], perChannel = results / channels;
  std::vector<float> weights(w.kernel[0] * w.kernel[1] * results), sums(results);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = toFloat(dataOf<T>(weight)[i]);
  T *to = resultOf<T>(a.writes[0]);
  float *const statistics = a.writes[1].data ? resultOf<float>(a.writes[1]) : nullptr;
  int64_t window = 0;
  for (int64_t i = 0; i < image.sizes[0]; ++i)
    for (int64_t row = 0; row < w.result[0]; ++row)
      for (int64_t column = 0; column < w.result[1]; ++column, ++window, to += results) {
        std::ranges::fill(sums, 0.0f);
        for (int64_t j = 0; j < w.kernel[0]; ++j)
          for (int64_t k = 0; k < w.kernel[1]; ++k) {
            const int64_t y = row * w.stride[0] - w.padding[0] + j * w.dilation[0],
                          x = column * w.stride[1] - w.padding[1] + k * w.dilation[1];
            if (y < 0 || y >= height || x < 0 || x >= width)
              continue;
            const T *from = dataOf<T>(image) + ((i * height + y) * width + x) * channels;
            const int64_t at = (j * w.kernel[1] + k) * results;
            for (int64_t c = 0, n = 0; c < channels; ++c) {
              const float pixel = toFloat(from[c]);
              for (const int64_t end = n + perChannel; n < end; ++n)
                sums[n] += pixel * weights[at + n];
            }
          }
        for (int64_t c = 0; c < results; ++c) {
          sums[c] = rounded<T>(sums[c] + (bias.data ? toFloat(dataOf<T>(bias)[c]) : 0));
          if (residual.data)
            sums[c] = rounded<T>(sums[c] + toFloat(dataOf<T>(residual)[window * results + c]));
        }
        withActivation<T>(Activation(a.ints[0]), [&](auto activation) {
          for (float &value : sums)
            value = activation(value);
        });
        storeRow(sums.data(), results, to);
        if (statistics)
          storeRowStatistics(to, window, results, statistics);
      }
}

} // namespace

CGC_REFERENCE(depthwise_conv_f16, depthwiseConv<F16>)
CGC_REFERENCE(depthwise_conv_bf16, depthwiseConv<BF16>)

} // namespace cgc::reference
