// References of all attention kernels: for each query the softmax over all keys at once.
#include "runtime/kernels/attention/heads.h"
#include "runtime/kernels/attention/softmax_guards.h"
#include "runtime/kernels/reference_elements.h"

#include <cmath>
#include <type_traits>

namespace cgc::reference {
namespace {

/// The kernels differ in the weights that they add up to the softmax's divisor: before they round
/// them to T for the tensor cores, or after.
enum class Divisor { OfExactWeights, OfRoundedWeights };

/// The first element of a head of a tensor [batch, heads, rows, columns].
template <class T> const T *headOf(const TensorView &tensor, int64_t batch, int64_t head) {
  return dataOf<T>(tensor) + batch * strideOf(tensor, 0) + head * strideOf(tensor, 1);
}

/// One head: queries, keys and values as f32, the keys transposed, so that the loops over keys and
/// over columns are vectorized.
struct Head {
  int64_t queries, keys, width;
  std::vector<float> q, k, v, scores, out;

  Head(int64_t queries, int64_t keys, int64_t width)
      : queries(queries), keys(keys), width(width), q(queries * width), k(width * keys),
        v(keys * width), scores(keys), out(width) {}

  template <class T> void load(const ReferenceArguments &a, int64_t batch, int64_t head) {
    const TensorView &qs = a.reads[0], &ks = a.reads[1], &vs = a.reads[2];
    for (int64_t i = 0; i < queries; ++i)
      loadRow(headOf<T>(qs, batch, head) + i * strideOf(qs, 2), width, q.data() + i * width);
    for (int64_t j = 0; j < keys; ++j) {
      const T *const from = headOf<T>(ks, batch, head) + j * strideOf(ks, 2);
      for (int64_t c = 0; c < width; ++c)
        k[c * keys + j] = toFloat(from[c]);
      loadRow(headOf<T>(vs, batch, head) + j * strideOf(vs, 2), width, v.data() + j * width);
    }
  }

  /// The scaled scores of query `i` for the first `seen` keys.
  void score(int64_t i, int64_t seen, float scale) {
    std::fill(scores.begin(), scores.end(), 0.0f);
    for (int64_t c = 0; c < width; ++c) {
      const float factor = q[i * width + c], *const column = k.data() + c * keys;
      for (int64_t j = 0; j < seen; ++j)
        scores[j] += factor * column[j];
    }
    for (int64_t j = 0; j < seen; ++j)
      scores[j] *= scale;
  }

  /// Turns the first `seen` scores into the result of a query.
  template <class T> void weigh(int64_t seen, Divisor divisor) {
    float most = -INFINITY;
    for (int64_t j = 0; j < seen; ++j)
      most = std::fmax(most, scores[j]);
    const float base = baseOf(most);
    std::fill(out.begin(), out.end(), 0.0f);
    float total = 0;
    for (int64_t j = 0; j < seen; ++j) {
      const float exact = std::exp(scores[j] - base), weight = rounded<T>(exact);
      total += divisor == Divisor::OfExactWeights ? exact : weight;
      const float *const row = v.data() + j * width;
      for (int64_t c = 0; c < width; ++c)
        out[c] += weight * row[c];
    }
    for (float &value : out)
      value /= divisorOf(total);
  }
};

template <class T>
void attend(const ReferenceArguments &a, const TensorView &mask, Divisor divisor) {
  const TensorView &q = a.reads[0], &y = a.writes[0];
  const auto [batches, heads, queries, keys, causal] = AttentionNumbers::of(a.ints);
  Head head(queries, keys, q.sizes[3]);
  const auto scale = static_cast<float>(a.floats[0]);
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      head.load<T>(a, b, h);
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t seen = causal ? std::min(keys, i + 1) : keys;
        head.score(i, seen, scale);
        if (mask.data) {
          const T *const of = headOf<T>(mask, b % mask.sizes[0], h) + i * strideOf(mask, 2);
          for (int64_t j = 0; j < seen; ++j)
            head.scores[j] +=
                std::is_same_v<T, F16> ? addendOfF16Mask(toFloat(of[j])) : toFloat(of[j]);
        }
        head.weigh<T>(seen, divisor);
        storeRow(head.out.data(), head.width,
                 resultOf<T>(y) + b * strideOf(y, 0) + h * strideOf(y, 1) + i * strideOf(y, 2));
      }
    }
}

template <class T> void attention(const ReferenceArguments &a) {
  attend<T>(a, a.reads[3], Divisor::OfExactWeights);
}
/// attention_resident_kv and attention_split_kv, which take no mask.
template <class T> void attentionWithoutMask(const ReferenceArguments &a) {
  attend<T>(a, {}, Divisor::OfRoundedWeights);
}

} // namespace

#define CGC_ATTENTION(COLUMNS)                                                                     \
  CGC_REFERENCE(attention_f16_##COLUMNS, attention<F16>)                                           \
  CGC_REFERENCE(attention_bf16_##COLUMNS, attention<BF16>)                                         \
  CGC_REFERENCE(attention_f32_##COLUMNS, attention<float>)
CGC_ATTENTION(32)
CGC_ATTENTION(48)
CGC_ATTENTION(64)
CGC_ATTENTION(80)
CGC_ATTENTION(96)
CGC_ATTENTION(112)
CGC_ATTENTION(128)
#undef CGC_ATTENTION
CGC_REFERENCE(attention_f16_64_hopper, attention<F16>)
CGC_REFERENCE(attention_bf16_64_hopper, attention<BF16>)

#define CGC_RESIDENT_KV(KEYS)                                                                      \
  CGC_REFERENCE(attention_resident_kv_f16_##KEYS, attentionWithoutMask<F16>)                       \
  CGC_REFERENCE(attention_resident_kv_bf16_##KEYS, attentionWithoutMask<BF16>)
CGC_RESIDENT_KV(64)
CGC_RESIDENT_KV(80)
CGC_RESIDENT_KV(128)
CGC_RESIDENT_KV(208)
CGC_RESIDENT_KV(272)
#undef CGC_RESIDENT_KV
CGC_REFERENCE(attention_split_kv_f16, attentionWithoutMask<F16>)
CGC_REFERENCE(attention_split_kv_bf16, attentionWithoutMask<BF16>)

} // namespace cgc::reference
