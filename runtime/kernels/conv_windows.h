// ConvWindows: the windows that a convolution, or a pool, reads of an image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cgc {

/// Window (h, w) of an image [height, width, channels] has the pixels from (h, w) * stride -
/// padding on, `dilation` apart; if it is negative, they go back from there. Pixels outside of the
/// image are zeros. Each member is of {height, width}.
struct ConvWindows {
  std::array<int64_t, 2> kernel, stride, padding, dilation;
  std::array<int64_t, 2> result; ///< Windows of an image.

  bool operator==(const ConvWindows &) const = default;

  /// The first pixel of a window, counted from the one that is nearest to the image's beginning.
  int64_t firstPixel(size_t i) const { return dilation[i] < 0 ? (1 - kernel[i]) * dilation[i] : 0; }

  /// The numbers of a launch, of which the windows are the last ten.
  static ConvWindows of(std::span<const int64_t> ints) {
    const auto last = ints.last(kNumbers);
    const auto pair = [&](size_t i) { return std::array{last[2 * i], last[2 * i + 1]}; };
    return {pair(0), pair(1), pair(2), pair(3), pair(4)};
  }
  static constexpr size_t kNumbers = 10;
  std::array<int64_t, kNumbers> ints() const {
    return {kernel[0],  kernel[1],   stride[0],   stride[1], padding[0],
            padding[1], dilation[0], dilation[1], result[0], result[1]};
  }
};

} // namespace cgc
