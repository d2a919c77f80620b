// The two passes of Pillow's resize.
#include "resample.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

namespace cgc_images {
namespace {

/// Weights are multiples of 2^-kBits. A weight w is kept as two int16, w = high * 2^kLowBits + low,
/// which multiply pairs of pixels by one instruction. The high and low sums may wrap around; their
/// combination does not.
constexpr int kBits = 22, kLowBits = 12;

double supportOf(Filter filter) {
  return filter == Filter::Bicubic ? 2 : 1;
}

double valueOf(Filter filter, double x) {
  x = std::abs(x);
  if (filter == Filter::Bilinear)
    return x < 1 ? 1 - x : 0;
  constexpr double a = -0.5;
  if (x < 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

std::atomic<bool> avx2 = __builtin_cpu_supports("avx2") != 0;

/// The weight of tap `tap` among those of an output.
int weightOf(const int16_t *weights, int tap) {
  const int16_t *const four = weights + tap / 4 * 8 + tap % 4;
  return four[0] * (1 << kLowBits) + four[4];
}

uint8_t rounded(int sum) {
  return uint8_t(std::clamp((sum + (1 << (kBits - 1))) >> kBits, 0, 255));
}

void resizeColumnsPlain(const uint8_t *in, const int16_t *weights, int taps, uint8_t *out,
                        int channels) {
  for (int channel = 0; channel < channels; ++channel) {
    int sum = 0;
    for (int tap = 0; tap < taps; ++tap)
      sum += in[tap * channels + channel] * weightOf(weights, tap);
    out[channel] = rounded(sum);
  }
}

/// One output pixel in 4 rows. Pairs of taps multiply-add into lanes [R01 R23 G01 G23 | B01 B23 K01
/// K23].
template <int kChannels>
__attribute__((target("avx2"), always_inline)) inline void
resizeColumnsAvx2(const uint8_t *const (&in)[4], const int16_t *weights, int taps,
                  uint8_t *const (&out)[4]) {
  constexpr char z = -1;
  const __m256i order = kChannels == 3
                            ? _mm256_setr_epi8(0, z, 3, z, 6, z, 9, z, 1, z, 4, z, 7, z, 10, z, //
                                               2, z, 5, z, 8, z, 11, z, z, z, z, z, z, z, z, z)
                            : _mm256_setr_epi8(0, z, 4, z, 8, z, 12, z, 1, z, 5, z, 9, z, 13, z, //
                                               2, z, 6, z, 10, z, 14, z, 3, z, 7, z, 11, z, 15, z);
  __m256i high[4] = {}, low[4] = {};
  for (int tap = 0; tap < taps; tap += 4) {
    const __m256i highWeights = _mm256_broadcastq_epi64(_mm_loadu_si64(weights + tap * 2));
    const __m256i lowWeights = _mm256_broadcastq_epi64(_mm_loadu_si64(weights + tap * 2 + 4));
    for (int row = 0; row < 4; ++row) {
      const __m128i bytes =
          _mm_loadu_si128(reinterpret_cast<const __m128i *>(in[row] + tap * kChannels));
      const __m256i pixels = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), order);
      high[row] = _mm256_add_epi32(high[row], _mm256_madd_epi16(pixels, highWeights));
      low[row] = _mm256_add_epi32(low[row], _mm256_madd_epi16(pixels, lowWeights));
    }
  }
  for (int row = 0; row < 4; ++row)
    low[row] = _mm256_add_epi32(_mm256_slli_epi32(high[row], kLowBits), low[row]);
  const __m256i half = _mm256_set1_epi32(1 << (kBits - 1));
  const __m256i first = _mm256_add_epi32(_mm256_hadd_epi32(low[0], low[1]), half);
  const __m256i second = _mm256_add_epi32(_mm256_hadd_epi32(low[2], low[3]), half);
  const __m256i shorts =
      _mm256_packs_epi32(_mm256_srai_epi32(first, kBits), _mm256_srai_epi32(second, kBits));
  const __m256i bytes =
      _mm256_packus_epi16(shorts, shorts); // Lanes: RG of the 4 rows, BK of the 4 rows.
  const __m128i pixels =
      _mm_unpacklo_epi16(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
  _mm_storeu_si32(out[0], pixels);
  _mm_storeu_si32(out[1], _mm_srli_si128(pixels, 4));
  _mm_storeu_si32(out[2], _mm_srli_si128(pixels, 8));
  _mm_storeu_si32(out[3], _mm_srli_si128(pixels, 12));
}

/// 32 bytes of an output row, from `size` rows of `in`.
__attribute__((target("avx2"), always_inline)) inline void
resizeRowAvx2(const uint8_t *in, ptrdiff_t pitch, const int16_t *weights, int size, uint8_t *out) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i high[4] = {}, low[4] = {};
  for (int tap = 0; tap < size; tap += 2) {
    const uint8_t *const row = in + tap * pitch;
    // A window of an odd size has a weight of 0 after its last.
    const uint8_t *const next = tap + 1 < size ? row + pitch : row;
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(row));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(next));
    const int16_t *const pair = weights + tap / 4 * 8 + tap % 4;
    const __m256i highWeights = _mm256_broadcastd_epi32(_mm_loadu_si32(pair));
    const __m256i lowWeights = _mm256_broadcastd_epi32(_mm_loadu_si32(pair + 4));
    const __m256i firstPairs = _mm256_unpacklo_epi8(a, b), lastPairs = _mm256_unpackhi_epi8(a, b);
    const __m256i pairs[4] = {
        _mm256_unpacklo_epi8(firstPairs, zero), _mm256_unpackhi_epi8(firstPairs, zero),
        _mm256_unpacklo_epi8(lastPairs, zero), _mm256_unpackhi_epi8(lastPairs, zero)};
    for (int i = 0; i < 4; ++i) {
      high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(pairs[i], highWeights));
      low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(pairs[i], lowWeights));
    }
  }
  for (int i = 0; i < 4; ++i) {
    const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high[i], kLowBits), low[i]);
    low[i] = _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << (kBits - 1))), kBits);
  }
  // Packing undoes the order of unpacking.
  const __m256i bytes =
      _mm256_packus_epi16(_mm256_packs_epi32(low[0], low[1]), _mm256_packs_epi32(low[2], low[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(out), bytes);
}

void resizeRowPlain(const uint8_t *in, ptrdiff_t pitch, const int16_t *weights, int size,
                    uint8_t *out, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    int sum = 0;
    for (int tap = 0; tap < size; ++tap)
      sum += in[tap * pitch + i] * weightOf(weights, tap);
    out[i] = rounded(sum);
  }
}

__attribute__((target("avx2"))) void resizeWholeRowAvx2(const uint8_t *in, ptrdiff_t pitch,
                                                        const int16_t *weights, int size,
                                                        uint8_t *out, int bytes) {
  for (int i = 0; i < bytes; i += 32)
    resizeRowAvx2(in + i, pitch, weights, size, out + i);
}

/// All outputs of 4 rows. windows: pairs of (first tap, taps).
template <int kChannels, class Window>
__attribute__((target("avx2"))) void
resizeFourRowsAvx2(const uint8_t *(&in)[4], int column, const Window *windows,
                   const int16_t *weights, int taps, int count, uint8_t *(&out)[4]) {
  for (int output = 0; output < count; ++output) {
    const ptrdiff_t from = ptrdiff_t(windows[output].begin - column) * kChannels,
                    to = ptrdiff_t(output) * kChannels;
    resizeColumnsAvx2<kChannels>({in[0] + from, in[1] + from, in[2] + from, in[3] + from},
                                 weights + ptrdiff_t(output) * taps * 2, taps,
                                 {out[0] + to, out[1] + to, out[2] + to, out[3] + to});
  }
}

} // namespace

Axis::Axis(Filter filter, int inputs, int outputs, int first, int count)
    : isCopy_(inputs == outputs), count_(count), firstInput_(first), endInput_(first + count) {
  if (isCopy_)
    return;
  const double scale = double(inputs) / outputs, widening = std::max(scale, 1.0);
  const double support = supportOf(filter) * widening, narrowing = 1.0 / widening;
  int most = 0;
  for (int output = first; output < first + count; ++output) {
    const double center = (output + 0.5) * scale;
    const int begin = std::max(0, int(center - support + 0.5));
    const int end = std::min(inputs, int(center + support + 0.5));
    windows_.push_back({begin, end - begin});
    most = std::max(most, end - begin);
  }
  taps_ = (most + 3) / 4 * 4;
  weights_.resize(size_t(count) * taps_ * 2);
  std::vector<double> values(most);
  for (int i = 0; i < count; ++i) {
    const auto [begin, size] = windows_[i];
    const double center = (first + i + 0.5) * scale;
    double sum = 0;
    for (int tap = 0; tap < size; ++tap)
      sum += values[tap] = valueOf(filter, (tap + begin - center + 0.5) * narrowing);
    for (int tap = 0; tap < size; ++tap) {
      const double value = (sum != 0 ? values[tap] / sum : values[tap]) * (1 << kBits);
      const int weight = int(value < 0 ? value - 0.5 : value + 0.5);
      const int high = (weight + (1 << (kLowBits - 1))) >> kLowBits;
      int16_t *const four = weights_.data() + ptrdiff_t(i) * taps_ * 2 + tap / 4 * 8 + tap % 4;
      four[0] = int16_t(high);
      four[4] = int16_t(weight - high * (1 << kLowBits));
    }
  }
  firstInput_ = windows_.front().begin;
  endInput_ = windows_.back().begin + windows_.back().size;
}

int Axis::mostTaps() const {
  int most = 0;
  for (int output = 0; output < count_; ++output)
    most = std::max(most, taps(output));
  return most;
}

int Axis::weight(int output, int tap) const {
  return isCopy_ ? 1 << kBits : weightOf(weights(output), tap);
}

void Axis::resizeColumns(const uint8_t *in, ptrdiff_t inPitch, int column, uint8_t *out,
                         ptrdiff_t outPitch, int rows, int channels) const {
  if (isCopy_) {
    for (int row = 0; row < rows; ++row)
      std::memcpy(out + row * outPitch,
                  in + row * inPitch + ptrdiff_t(firstInput_ - column) * channels,
                  size_t(count_) * channels);
    return;
  }
  if (!avx2) {
    for (int row = 0; row < rows; ++row)
      for (int i = 0; i < count_; ++i)
        resizeColumnsPlain(in + row * inPitch + ptrdiff_t(windows_[i].begin - column) * channels,
                           weights(i), windows_[i].size,
                           out + row * outPitch + ptrdiff_t(i) * channels, channels);
    return;
  }
  for (int row = 0; row < rows; row += 4) {
    const uint8_t *from[4];
    uint8_t *to[4];
    for (int i = 0; i < 4; ++i) { // The last row may be computed several times.
      from[i] = in + std::min(row + i, rows - 1) * inPitch;
      to[i] = out + std::min(row + i, rows - 1) * outPitch;
    }
    const auto resize =
        channels == 3 ? resizeFourRowsAvx2<3, Window> : resizeFourRowsAvx2<4, Window>;
    resize(from, column, windows_.data(), weights_.data(), taps_, count_, to);
  }
}

void Axis::resizeRow(const uint8_t *in, ptrdiff_t inPitch, int row, int output, uint8_t *out,
                     int bytes) const {
  if (isCopy_) {
    std::memcpy(out, in + (firstInput_ + output - row) * inPitch, bytes);
    return;
  }
  const auto resize = avx2 ? resizeWholeRowAvx2 : resizeRowPlain;
  resize(in + (windows_[output].begin - row) * inPitch, inPitch, weights(output),
         windows_[output].size, out, bytes);
}

bool usesAvx2() {
  return avx2;
}
void setAvx2(bool use) {
  avx2 = use && __builtin_cpu_supports("avx2") != 0;
}

} // namespace cgc_images
