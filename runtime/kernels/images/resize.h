// resize_*: the table of a picture, the arithmetic that kernel and reference share, the launch
// shape and the check.
#pragma once

#include "runtime/kernels/divider.h"
#include "runtime/kernels/kernel_table.h"

#include <algorithm>

#ifdef __CUDACC__
#define CGC_HOST_DEVICE __host__ __device__
#else
#define CGC_HOST_DEVICE
#endif

namespace cgc {

inline constexpr uint32_t kResizeThreads = 256;
/// Weights are multiples of 2^-kResizeBits, as those of Pillow.
inline constexpr int kResizeBits = 22;
/// Integers of a table before the columns.
inline constexpr int kResizeHeader = 3;

/// CTAs for a result of so many pixels, each of 3 elements. The kernel is correct with any number.
constexpr uint32_t resizeBlocks(uint64_t pixels) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((pixels + kResizeThreads - 1) / kResizeThreads, 1, uint64_t(1) << 16));
}

/// A checked launch.
struct ResizeLaunch {
  uint32_t pixels;       ///< Of all results.
  int64_t bytes;         ///< Of a picture.
  int64_t integers;      ///< Of a table.
  int taps;              ///< Of an output of an axis.
  int rows;              ///< Of a result.
  Divider area, columns; ///< Pixels of a result, and of a row of it.
};
Result<ResizeLaunch> checkResize(const LaunchView &launch, DType dtype);

/// One output of an axis: the picture's column or row of its first tap, and the weights of its
/// taps, `pitch` integers apart.
struct ResizeAxis {
  const int32_t *weights;
  int pitch, taps;
  int32_t first;

  /// Output `at` of `count`, whose first taps and weights [taps, count] are at `table`.
  static CGC_HOST_DEVICE ResizeAxis of(const int32_t *table, int count, int taps, int at) {
    return {table + count + at, count, taps, table[at]};
  }
};

/// The sum of weights and values, rounded half up and clamped to 0..255. It wraps around as int32,
/// which those of a picture's own weights do not. Taps of no weight are not read: value(tap).
template <class F>
CGC_HOST_DEVICE void resizeTaps(const ResizeAxis &axis, int (&sums)[3], F value) {
  uint32_t all[3] = {1u << (kResizeBits - 1), 1u << (kResizeBits - 1), 1u << (kResizeBits - 1)};
  for (int tap = 0; tap < axis.taps; ++tap) {
    const int32_t weight = axis.weights[int64_t(tap) * axis.pitch];
    if (weight == 0)
      continue;
    int of[3];
    value(tap, of);
    for (int c = 0; c < 3; ++c)
      all[c] += uint32_t(weight) * uint32_t(of[c]);
  }
  for (int c = 0; c < 3; ++c) {
    const int level = int32_t(all[c]) >> kResizeBits;
    sums[c] = level < 0 ? 0 : level > 255 ? 255 : level;
  }
}

/// Writes the three channels of pixel (row, column) of the result, 0..255, of the picture of
/// `pixels` pixels at `picture`, whose table is `table`. Reads none but these, whatever the table
/// says.
CGC_HOST_DEVICE inline void resizePixel(const uint8_t *picture, int64_t pixels,
                                        const int32_t *table, const ResizeLaunch &l, int row,
                                        int column, int (&result)[3]) {
  const int columns = int(l.columns.divisor);
  const int32_t *const axes = table + kResizeHeader;
  const ResizeAxis across = ResizeAxis::of(axes, columns, l.taps, column),
                   down =
                       ResizeAxis::of(axes + int64_t(columns) * (1 + l.taps), l.rows, l.taps, row);
  if (across.first < 0 || down.first < 0) {
    const int fill = table[2] < 0 ? 0 : table[2] > 255 ? 255 : table[2];
    result[0] = result[1] = result[2] = fill;
    return;
  }
  const int64_t pitch = table[0];
  const auto read = [&](int y, int x, int(&of)[3]) {
    int64_t at = (int64_t(down.first) + y) * pitch + across.first + x;
    at = at < 0 ? 0 : at >= pixels ? pixels - 1 : at;
    for (int c = 0; c < 3; ++c)
      of[c] = picture[at * 3 + c];
  };
  if (table[1] != 0)
    resizeTaps(across, result, [&](int x, int(&of)[3]) {
      resizeTaps(down, of, [&](int y, int(&pixel)[3]) { read(y, x, pixel); });
    });
  else
    resizeTaps(down, result, [&](int y, int(&of)[3]) {
      resizeTaps(across, of, [&](int x, int(&pixel)[3]) { read(y, x, pixel); });
    });
}

} // namespace cgc

#undef CGC_HOST_DEVICE
