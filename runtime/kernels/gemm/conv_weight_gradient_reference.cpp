// References of conv_weight_gradient_* and sum_parts_f32.
#include "runtime/kernels/gemm/conv_weight_gradient.h"
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

template <class T> void weightGradient(const ReferenceArguments &a) {
  const TensorView &grad = a.reads[0], &image = a.reads[1];
  const ConvWindows w = ConvWindows::of(a.ints);
  const int64_t results = grad.sizes.back(), height = image.sizes[1], width = image.sizes[2],
                channels = image.sizes[3], splits = a.ints[0], pixels = w.kernel[0] * w.kernel[1],
                windows = image.sizes[0] * w.result[0] * w.result[1];
  const int64_t steps = WeightGradientShape::of(windows, results, pixels, channels).steps;
  float *const parts = resultOf<float>(a.writes[0]);
  std::fill_n(parts, splits * results * pixels * channels, 0.0f);
  std::vector<float> g(results), x(channels);
  for (int64_t split = 0; split < splits; ++split) {
    float *const part = parts + split * results * pixels * channels;
    const int64_t end = std::min(steps * (split + 1) / splits * kWeightGradientBox, windows);
    for (int64_t m = steps * split / splits * kWeightGradientBox; m < end; ++m) {
      const int64_t line = m / w.result[1], i = line / w.result[0];
      for (int64_t o = 0; o < results; ++o)
        g[o] = toFloat(dataOf<T>(grad)[m * results + o]);
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t v = line % w.result[0] * w.stride[0] - w.padding[0] +
                          p / w.kernel[1] * w.dilation[0],
                      u = m % w.result[1] * w.stride[1] - w.padding[1] +
                          p % w.kernel[1] * w.dilation[1];
        if (v < 0 || v >= height || u < 0 || u >= width)
          continue;
        for (int64_t c = 0; c < channels; ++c)
          x[c] = toFloat(dataOf<T>(image)[((i * height + v) * width + u) * channels + c]);
        for (int64_t o = 0; o < results; ++o) {
          float *const row = part + (o * pixels + p) * channels;
          for (int64_t c = 0; c < channels; ++c)
            row[c] += g[o] * x[c];
        }
      }
    }
  }
}

void sumParts(const ReferenceArguments &a) {
  const int64_t splits = a.reads[0].sizes[0];
  int64_t elements = 1;
  for (const int64_t size : a.writes[0].sizes)
    elements *= size;
  const float *const parts = dataOf<float>(a.reads[0]);
  float *const y = resultOf<float>(a.writes[0]);
  for (int64_t i = 0; i < elements; ++i) {
    float sum = 0;
    for (int64_t s = 0; s < splits; ++s)
      sum += parts[s * elements + i];
    y[i] = sum;
  }
}

} // namespace

CGC_REFERENCE(conv_weight_gradient_f16_64, weightGradient<F16>)
CGC_REFERENCE(conv_weight_gradient_f16_128, weightGradient<F16>)
CGC_REFERENCE(conv_weight_gradient_bf16_64, weightGradient<BF16>)
CGC_REFERENCE(conv_weight_gradient_bf16_128, weightGradient<BF16>)
CGC_REFERENCE(sum_parts_f32, sumParts)

} // namespace cgc::reference
