// References of stem_conv_*.
#include "runtime/kernels/images/images.h"
#include "runtime/kernels/pointwise/reference_activations.h"
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

template <class T> void stemConv(const ReferenceArguments &a) {
  const TensorView &image = a.reads[0], &weight = a.reads[1], &bias = a.reads[2];
  const ConvWindows w = ConvWindows::of(a.ints);
  const int64_t height = image.sizes[1], width = image.sizes[2], channels = image.sizes[3];
  const int64_t results = weight.sizes[0], products = w.kernel[0] * w.kernel[1] * channels;
  std::vector<float> weights(results * products), window(products), sums(results);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = toFloat(dataOf<T>(weight)[i]);
  T *to = resultOf<T>(a.writes[0]);
  for (int64_t i = 0; i < image.sizes[0]; ++i)
    for (int64_t row = 0; row < w.result[0]; ++row)
      for (int64_t column = 0; column < w.result[1]; ++column, to += results) {
        float *of = window.data();
        for (int64_t j = 0; j < w.kernel[0]; ++j)
          for (int64_t k = 0; k < w.kernel[1]; ++k)
            for (int64_t c = 0; c < channels; ++c, ++of) {
              const int64_t y = row * w.stride[0] - w.padding[0] + j * w.dilation[0],
                            x = column * w.stride[1] - w.padding[1] + k * w.dilation[1];
              const bool isInside = y >= 0 && y < height && x >= 0 && x < width;
              const int64_t at = i * strideOf(image, 0) + y * strideOf(image, 1) +
                                 x * strideOf(image, 2) + c * strideOf(image, 3);
              *of = isInside ? toFloat(dataOf<T>(image)[at]) : 0;
            }
        for (int64_t n = 0; n < results; ++n) {
          float sum = 0;
          for (int64_t k = 0; k < products; ++k)
            sum += window[k] * weights[n * products + k];
          sums[n] = rounded<T>(sum + (bias.data ? toFloat(dataOf<T>(bias)[n]) : 0));
        }
        withActivation<T>(Activation(a.ints[0]), [&](auto activation) {
          for (float &value : sums)
            value = activation(value);
        });
        storeRow(sums.data(), results, to);
      }
}

} // namespace

CGC_REFERENCE(stem_conv_f16, stemConv<F16>)
CGC_REFERENCE(stem_conv_bf16, stemConv<BF16>)

} // namespace cgc::reference
