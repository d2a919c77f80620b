// resize against the same integer arithmetic, pass by pass: up- and downscaling, extreme ratios,
// both orders, fills, and tables that point outside of their picture.
#include "runtime/kernels/images/resize.h"
#include "tests/conformance/kernel_fixture.h"

#include <random>

namespace cgc::test {
namespace {

/// A picture and the size that it is resized to.
struct Case {
  int64_t height, width, rows, columns;
  bool rowsFirst = false;
};
constexpr Case kCases[] = {{1, 1, 5, 7},           {1, 30, 8, 8},       {30, 1, 8, 8, true},
                           {8, 8, 8, 8},           {5, 6, 16, 12},      {40, 30, 8, 10},
                           {40, 30, 8, 10, true},  {90, 3, 6, 5, true}, {3, 90, 6, 5},
                           {64, 48, 24, 24, true}, {33, 57, 224, 224}};
constexpr int64_t kTaps = 17;

/// The taps of an output of an axis.
struct Window {
  int64_t first;
  std::vector<int64_t> weights;
};
/// Triangles, like Pillow's bilinear filter, with weights that sum to 2^22 in about. Negative ones
/// stand for those of cubic filters.
std::vector<Window> windowsOf(int64_t inputs, int64_t outputs) {
  std::vector<Window> windows;
  const double scale = double(inputs) / double(outputs), support = std::max(scale, 1.0);
  for (int64_t x = 0; x < outputs; ++x) {
    const double center = (double(x) + 0.5) * scale;
    const auto first = std::max<int64_t>(0, int64_t(center - support)),
               end = std::min({inputs, int64_t(center + support) + 1, first + kTaps});
    Window window{first, {}};
    double sum = 0;
    std::vector<double> values;
    for (int64_t i = first; i < end; ++i)
      sum += values.emplace_back(
          std::max(-0.1, 1 - std::abs((double(i) + 0.5 - center) / support) * 1.2));
    for (const double value : values)
      window.weights.push_back(int64_t(value / sum * (1 << kResizeBits)));
    windows.push_back(window);
  }
  return windows;
}

/// The part of a table that an axis has.
void append(std::vector<double> &table, const std::vector<Window> &windows) {
  for (const Window &window : windows)
    table.push_back(double(window.first));
  for (size_t tap = 0; tap < kTaps; ++tap)
    for (const Window &window : windows)
      table.push_back(tap < window.weights.size() ? double(window.weights[tap]) : 0);
}

/// One pass over the lines of an image [lines, inputs] of 3 channels whose pixels are `pixel`
/// apart.
std::vector<int64_t> pass(const std::vector<int64_t> &image, int64_t lines, int64_t line,
                          int64_t pixel, const std::vector<Window> &windows, int64_t toLine,
                          int64_t toPixel) {
  std::vector<int64_t> result(size_t(lines) * windows.size() * 3);
  for (int64_t i = 0; i < lines; ++i)
    for (size_t x = 0; x < windows.size(); ++x)
      for (int64_t c = 0; c < 3; ++c) {
        int64_t sum = 1 << (kResizeBits - 1);
        for (size_t tap = 0; tap < windows[x].weights.size(); ++tap)
          sum += windows[x].weights[tap] *
                 image[(i * line + (windows[x].first + int64_t(tap)) * pixel) * 3 + c];
        result[(i * toLine + int64_t(x) * toPixel) * 3 + c] =
            std::clamp<int64_t>(sum >> kResizeBits, 0, 255);
      }
  return result;
}

class Resizes : public KernelTest {
protected:
  /// The elements of y of a picture, as numbers of `values`.
  static std::vector<int64_t> expected(const Case &c, const std::vector<int64_t> &image) {
    const auto down = windowsOf(c.height, c.rows), across = windowsOf(c.width, c.columns);
    if (c.rowsFirst)
      return pass(pass(image, c.width, 1, c.width, down, 1, c.width), c.rows, c.width, 1, across,
                  c.columns, 1);
    return pass(pass(image, c.height, c.width, 1, across, c.columns, 1), c.columns, 1, c.columns,
                down, 1, c.columns);
  }

  HostTensor resize(const HostTensor &pixels, const HostTensor &table, const HostTensor &values,
                    const Case &c, std::optional<uint64_t> blocks = {}) {
    const HostTensor y = emptyTensor(values.dtype, {pixels.sizes[0], 3, c.rows, c.columns});
    return launch({.kernel = named("resize", values.dtype),
                   .blocks = blocks.value_or(resizeBlocks(y.elements() / 3)),
                   .threads = kResizeThreads,
                   .reads = {pixels, table, values},
                   .writes = {y}})[0];
  }
};
CGC_ON_ALL_EXECUTORS(Resizes);

HostTensor valuesOf(DType dtype) {
  return withRandom(emptyTensor(dtype, {3, 256}), 3);
}

TEST_P(Resizes, EqualTwoPasses) {
  for (const DType dtype : kFloats)
    for (const Case &c : kCases) {
      SCOPED_TRACE(std::to_string(c.height) + "x" + std::to_string(c.width));
      constexpr int64_t kImages = 2;
      const int64_t bytes = c.height * c.width * 3 + 5;
      std::mt19937 random(1);
      std::vector<double> pixels, table;
      std::vector<int64_t> want;
      for (int64_t image = 0; image < kImages; ++image) {
        std::vector<int64_t> picture(bytes);
        for (int64_t &value : picture)
          pixels.push_back(double(value = random() % 256));
        std::ranges::copy(expected(c, picture), std::back_inserter(want));
        for (const int64_t number : {c.width, int64_t(c.rowsFirst), int64_t(9)})
          table.push_back(double(number));
        append(table, windowsOf(c.width, c.columns));
        append(table, windowsOf(c.height, c.rows));
      }
      const HostTensor values = valuesOf(dtype);
      expectEqual(
          resize(withValues(emptyTensor(DType::U8, {kImages, bytes}), pixels),
                 withValues(emptyTensor(DType::I32, {kImages, int64_t(table.size()) / kImages}),
                            table),
                 values, c),
          [&](uint64_t i) {
            const uint64_t area = uint64_t(c.rows * c.columns), image = i / (3 * area),
                           channel = i / area % 3;
            return values.at(channel * 256 +
                             uint64_t(want[((image * area) + i % area) * 3 + channel]));
          });
    }
}

/// Rows and columns without the picture have the fill, which is clamped.
TEST_P(Resizes, FillWhatIsOutside) {
  const HostTensor values = valuesOf(DType::F32),
                   pixels = emptyTensor(DType::U8, {3, 3}); // One pixel of zeros each.
  std::vector<double> table;
  for (const int fill : {77, -5, 300}) {
    std::ranges::copy(std::vector<double>{1, 0, double(fill)}, std::back_inserter(table));
    // Columns: outside, inside. Rows: inside, outside.
    std::ranges::copy(std::vector<double>{-1, 0, 0, 1 << kResizeBits}, std::back_inserter(table));
    std::ranges::copy(std::vector<double>{0, -1, 1 << kResizeBits, 0}, std::back_inserter(table));
  }
  const int64_t fills[] = {77, 0, 255};
  expectEqual(
      resize(pixels, withValues(emptyTensor(DType::I32, {3, 11}), table), values, {1, 1, 2, 2}),
      [&](uint64_t i) {
        return values.at(i / 4 % 3 * 256 + uint64_t(i % 4 == 1 ? 0 : fills[i / 12]));
      });
}

/// A table from a file says anything. Each tap is a pixel of its own picture, and sums wrap around.
TEST_P(Resizes, ReadNothingButTheirPicture) {
  constexpr int64_t kImages = 4, kRows = 9, kColumns = 11;
  const int64_t integers = kResizeHeader + (kRows + kColumns) * (1 + kTaps);
  std::vector<double> pixels(kImages * 30), table(kImages * integers);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t picture = i / 30;
    pixels[i] = double(picture * 80); // A picture has one color.
  }
  std::mt19937 random(1);
  for (double &number : table)
    number = double(int32_t(random()));
  for (int64_t image = 0; image < kImages; ++image) {
    double *const to = table.data() + image * integers;
    to[1] = double(image % 2);
    for (const auto &[begin, count] : {std::pair<int64_t, int64_t>{kResizeHeader, kColumns},
                                       {kResizeHeader + kColumns * (1 + kTaps), kRows}})
      for (int64_t i = 0; i < count; ++i) { // One tap of weight 1, anywhere.
        to[begin + i] = double(random() >> 1);
        for (int64_t tap = 0; tap < kTaps; ++tap)
          to[begin + count * (1 + tap) + i] = tap == i % kTaps ? 1 << kResizeBits : 0;
      }
  }
  const HostTensor values = valuesOf(DType::F16);
  expectEqual(resize(withValues(emptyTensor(DType::U8, {kImages, 30}), pixels),
                     withValues(emptyTensor(DType::I32, {kImages, integers}), table), values,
                     {1, 1, kRows, kColumns}),
              [&](uint64_t i) {
                const uint64_t area = kRows * kColumns;
                return values.at(i / area % 3 * 256 + i / (3 * area) * 80);
              });
}

/// The first pixel behind a picture is the last one of it, and not the first of the next picture.
TEST_P(Resizes, TheNextPictureIsOutside) {
  const HostTensor values = valuesOf(DType::F32);
  for (const int rowsFirst : {0, 1}) {
    const std::vector<double> one{2, double(rowsFirst), 0, 2, 1 << kResizeBits,
                                  0, 1 << kResizeBits};
    std::vector<double> table;
    for (int image = 0; image < 2; ++image)
      table.insert(table.end(), one.begin(), one.end());
    expectEqual(resize(withValues(emptyTensor(DType::U8, {2, 6}),
                                  {1, 1, 1, 20, 20, 20, 3, 3, 3, 40, 40, 40}),
                       withValues(emptyTensor(DType::I32, {2, 7}), table), values, {1, 2, 1, 1}),
                [&](uint64_t i) { return values.at(i % 3 * 256 + (i < 3 ? 20 : 40)); });
  }
}

/// Each thread has many pixels.
TEST_P(Resizes, LoopOverAGridOfAnySize) {
  const HostTensor values = valuesOf(DType::F32);
  const Case c{30, 40, 50, 60};
  std::vector<double> pixels(30 * 40 * 3), table{40, 0, 0};
  std::vector<int64_t> picture(pixels.size());
  for (size_t i = 0; i < picture.size(); ++i)
    pixels[i] = double(picture[i] = int64_t(i * 2654435761u >> 13) % 256);
  append(table, windowsOf(c.width, c.columns));
  append(table, windowsOf(c.height, c.rows));
  const std::vector<int64_t> want = expected(c, picture);
  expectEqual(resize(withValues(emptyTensor(DType::U8, {1, int64_t(pixels.size())}), pixels),
                     withValues(emptyTensor(DType::I32, {1, int64_t(table.size())}), table), values,
                     c, 2),
              [&](uint64_t i) {
                return values.at(i / 3000 * 256 + uint64_t(want[i % 3000 * 3 + i / 3000]));
              });
}

} // namespace
} // namespace cgc::test
