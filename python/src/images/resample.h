// The two passes of Pillow's resize, on rows of uint8, in the same integer arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cgc_images {

/// Bilinear is a triangle of support 1, bicubic Keys' cubic convolution with a = -1/2 of support 2.
/// Both widen with the scale of a reduction.
enum class Filter { Bilinear, Bicubic };

/// One axis of a resize from `inputs` to `outputs` elements, of which [first, first + count) are
/// computed.
///
/// As in Pillow, output x is centered on input c = (x + 0.5) s with s = inputs / outputs, and is
/// the sum of weights f((i + 0.5 - c) / max(s, 1)) of the inputs within the support, normalized in
/// f64 and rounded to multiples of 2^-22. The sum of weights and uint8 is rounded half up and
/// clamped to 0..255. An axis of equal sizes is a copy.
class Axis {
public:
  Axis(Filter filter, int inputs, int outputs, int first, int count);

  bool isCopy() const { return isCopy_; }
  int count() const { return count_; }
  /// The inputs that the outputs need: [firstInput, endInput).
  int firstInput() const { return firstInput_; }
  int endInput() const { return endInput_; }
  /// The inputs of output `output` of `count()`: the first, their number, which is at most
  /// `mostTaps()`, and the weight of each in units of 2^-22.
  int firstInput(int output) const {
    return isCopy_ ? firstInput_ + output : windows_[output].begin;
  }
  int taps(int output) const { return isCopy_ ? 1 : windows_[output].size; }
  int mostTaps() const;
  int weight(int output, int tap) const;

  /// Columns: writes `count()` pixels to each of `rows` rows of `out`, from rows of `in`, whose
  /// first column is `column`. Rows are `inPitch` and `outPitch` bytes apart. Each row of `in` has
  /// inSlack(channels) bytes more that may be read, and each row of `out` has 4 more that are
  /// written.
  void resizeColumns(const uint8_t *in, ptrdiff_t inPitch, int column, uint8_t *out,
                     ptrdiff_t outPitch, int rows, int channels) const;
  int inSlack(int channels) const { return taps_ * channels + 16; }

  /// Rows: writes output `output` of `count()` to `out`, `bytes` bytes rounded up to 32, from rows
  /// of `in`, of which the first is row `row`. All rows have that many bytes.
  void resizeRow(const uint8_t *in, ptrdiff_t inPitch, int row, int output, uint8_t *out,
                 int bytes) const;

private:
  /// The taps of an output.
  struct Window {
    int begin, size;
  };
  const int16_t *weights(int output) const {
    return weights_.data() + ptrdiff_t(output) * taps_ * 2;
  }

  bool isCopy_;
  int count_, firstInput_, endInput_;
  /// The most taps of an output, rounded up to 4.
  int taps_ = 0;
  std::vector<Window> windows_;
  /// For each output and 4 taps: 4 high parts, 4 low parts (resample.cpp). Zeros follow the last
  /// tap.
  std::vector<int16_t> weights_;
};

/// Whether resize uses AVX2, which it does where the processor has it. For tests: setAvx2(false)
/// lets it use none.
bool usesAvx2();
void setAvx2(bool use);

} // namespace cgc_images
