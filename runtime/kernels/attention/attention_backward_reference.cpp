// References of attention_backward_*: P of each query over all keys at once.
#include "runtime/kernels/attention/heads.h"
#include "runtime/kernels/attention/softmax_guards.h"
#include "runtime/kernels/reference_elements.h"

#include <cmath>

namespace cgc::reference {
namespace {

/// The rows of a head of a tensor [batch, heads, rows, width], as f32.
template <class T>
std::vector<float> loadHead(const TensorView &tensor, int64_t batch, int64_t head) {
  const int64_t rows = tensor.sizes[2], width = tensor.sizes[3];
  std::vector<float> values(rows * width);
  const T *const first =
      dataOf<T>(tensor) + batch * strideOf(tensor, 0) + head * strideOf(tensor, 1);
  for (int64_t i = 0; i < rows; ++i)
    loadRow(first + i * strideOf(tensor, 2), width, values.data() + i * width);
  return values;
}

template <class T>
void storeHead(const TensorView &tensor, int64_t batch, int64_t head,
               const std::vector<float> &values) {
  const int64_t rows = tensor.sizes[2], width = tensor.sizes[3];
  T *const first = resultOf<T>(tensor) + batch * strideOf(tensor, 0) + head * strideOf(tensor, 1);
  for (int64_t i = 0; i < rows; ++i)
    storeRow(values.data() + i * width, width, first + i * strideOf(tensor, 2));
}

float product(const float *a, const float *b, int64_t count) {
  float sum = 0;
  for (int64_t c = 0; c < count; ++c)
    sum += a[c] * b[c];
  return sum;
}

/// sums += factor * row.
void addScaled(float *sums, float factor, const float *row, int64_t count) {
  for (int64_t c = 0; c < count; ++c)
    sums[c] += factor * row[c];
}

/// The kernels round P and dS to T for the tensor cores.
template <class T> void attentionBackward(const ReferenceArguments &a) {
  const auto [batches, heads, queries, keys, causal] = AttentionNumbers::of(a.ints);
  const int64_t width = a.reads[1].sizes[3];
  const auto scale = static_cast<float>(a.floats[0]);
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const auto dO = loadHead<T>(a.reads[0], b, h), q = loadHead<T>(a.reads[1], b, h),
                 k = loadHead<T>(a.reads[2], b, h), v = loadHead<T>(a.reads[3], b, h);
      std::vector<float> dQ(q.size()), dK(k.size()), dV(v.size()), p(keys), dP(keys);
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t seen = causal ? std::min(keys, i + 1) : keys;
        float rowMax = -INFINITY, sum = 0, delta = 0;
        for (int64_t j = 0; j < seen; ++j) {
          p[j] = product(&q[i * width], &k[j * width], width) * scale;
          dP[j] = product(&dO[i * width], &v[j * width], width);
          rowMax = std::fmax(rowMax, p[j]);
        }
        const float base = baseOf(rowMax);
        for (int64_t j = 0; j < seen; ++j) {
          p[j] = std::exp(p[j] - base);
          sum += p[j];
        }
        const float divisor = divisorOf(sum);
        for (int64_t j = 0; j < seen; ++j) {
          p[j] /= divisor;
          delta += p[j] * dP[j];
        }
        for (int64_t j = 0; j < seen; ++j) {
          const float dS = rounded<T>(p[j] * (dP[j] - delta));
          addScaled(&dQ[i * width], dS * scale, &k[j * width], width);
          addScaled(&dK[j * width], dS * scale, &q[i * width], width);
          addScaled(&dV[j * width], rounded<T>(p[j]), &dO[i * width], width);
        }
      }
      storeHead<T>(a.writes[0], b, h, dQ);
      storeHead<T>(a.writes[1], b, h, dK);
      storeHead<T>(a.writes[2], b, h, dV);
    }
}

} // namespace

CGC_REFERENCE(attention_backward_f16_64, attentionBackward<F16>)
CGC_REFERENCE(attention_backward_bf16_64, attentionBackward<BF16>)
CGC_REFERENCE(attention_backward_f16_80, attentionBackward<F16>)
CGC_REFERENCE(attention_backward_bf16_80, attentionBackward<BF16>)

} // namespace cgc::reference
