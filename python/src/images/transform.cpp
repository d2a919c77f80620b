// open_clip's transform for inference.
#include "transform.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace cgc_images {
namespace {

/// Python's round(): halves to the even integer.
int64_t rounded(double x) {
  return int64_t(std::nearbyint(x));
}

/// The pixel of the resized axis at the begin of the result.
int64_t center(int64_t resized, int result) {
  return resized < result ? -((result - resized) / 2) : rounded(double(resized - result) / 2);
}

/// Pixels of an axis of the result that the picture covers: [begin, begin + count).
struct Covered {
  int begin, count;
};
Covered coveredBy(int resized, int result, int offset) {
  const int begin = std::max(0, -offset);
  return {begin, std::min(result, resized - offset) - begin};
}

ptrdiff_t alignedTo32(int64_t bytes) {
  return (bytes + 31) / 32 * 32;
}

/// Memory of at least `bytes` bytes.
uint8_t *reserve(std::vector<uint8_t> &memory, int64_t bytes) {
  if (int64_t(memory.size()) < bytes)
    memory.resize(bytes);
  return memory.data();
}

/// Pillow's conversion of CMYK, where products of two uint8 are divided by 255 and rounded.
void convertCmyk(const uint8_t *in, uint8_t *out, int pixels) {
  for (int i = 0; i < pixels; ++i)
    for (int c = 0; c < 3; ++c) {
      const int light = 255 - in[i * 4 + 3], product = in[i * 4 + c] * light + 128;
      out[i * 3 + c] = uint8_t(std::clamp(light - (((product >> 8) + product) >> 8), 0, 255));
    }
}

template <class Element>
void writeRow(const uint8_t *rgb, const Sizes &sizes, const Result &result, int y) {
  const auto *const table = reinterpret_cast<const Element *>(result.table.data());
  auto *const out = reinterpret_cast<Element *>(result.data);
  if (result.channelsLast) {
    Element *const row = out + ptrdiff_t(y) * sizes.width * 3;
    for (int x = 0; x < sizes.width; ++x)
      for (int c = 0; c < 3; ++c)
        row[x * 3 + c] = table[c * 256 + rgb[x * 3 + c]];
    return;
  }
  const ptrdiff_t plane = ptrdiff_t(sizes.height) * sizes.width;
  Element *const row = out + ptrdiff_t(y) * sizes.width;
  for (int x = 0; x < sizes.width; ++x)
    for (int c = 0; c < 3; ++c)
      row[c * plane + x] = table[c * 256 + rgb[x * 3 + c]];
}

void writeRow(const uint8_t *rgb, const Sizes &sizes, const Result &result, int y) {
  if (result.elementSize == 1)
    writeRow<uint8_t>(rgb, sizes, result, y);
  else if (result.elementSize == 2)
    writeRow<uint16_t>(rgb, sizes, result, y);
  else
    writeRow<uint32_t>(rgb, sizes, result, y);
}

} // namespace

Placement place(const Sizes &sizes, int height, int width) {
  int64_t resizedHeight = sizes.height, resizedWidth = sizes.width;
  if (sizes.mode == ResizeMode::Shortest && (sizes.edge || sizes.height == sizes.width)) {
    // Resize(int): the longer edge is truncated.
    const int64_t shortest = sizes.edge ? sizes.edge : sizes.height;
    const int64_t longest =
        int64_t(double(shortest * std::max(height, width)) / double(std::min(height, width)));
    resizedHeight = width <= height ? longest : shortest;
    resizedWidth = width <= height ? shortest : longest;
  } else if (sizes.mode != ResizeMode::Squash) {
    const double vertical = double(height) / sizes.height, horizontal = double(width) / sizes.width;
    const double ratio = sizes.mode == ResizeMode::Longest ? std::max(vertical, horizontal)
                                                           : std::min(vertical, horizontal);
    resizedHeight = rounded(height / ratio);
    resizedWidth = rounded(width / ratio);
  }
  if (std::max(resizedHeight, resizedWidth) > INT32_MAX)
    throw PictureError(CGC_INVALID_FILE, "is too long: resized it has " +
                                             std::to_string(resizedWidth) + " x " +
                                             std::to_string(resizedHeight) + " pixels");
  if (sizes.edge) // center_crop() rounds down.
    return {int(resizedHeight), int(resizedWidth), int((resizedHeight - sizes.height) / 2),
            int((resizedWidth - sizes.width) / 2)};
  return {int(resizedHeight), int(resizedWidth), int(center(resizedHeight, sizes.height)),
          int(center(resizedWidth, sizes.width))};
}

namespace {

/// Integers of a table before the columns.
constexpr size_t kHeader = 3;

/// The parts of a resize that the result needs.
struct Plan {
  Placement at;
  Covered rows, columns; ///< Of the result.
  Axis vertical, horizontal;
  bool rowsFirst; ///< Whether rows are resized before columns.

  Plan(const Sizes &sizes, int height, int width)
      : at(placed(sizes, height, width)), rows(coveredBy(at.height, sizes.height, at.top)),
        columns(coveredBy(at.width, sizes.width, at.left)),
        vertical(sizes.filter, height, at.height, at.top + rows.begin, rows.count),
        horizontal(sizes.filter, width, at.width, at.left + columns.begin, columns.count) {
    // Pillow 13 resizes the rows first if that removes more than twice as many rows as columns.
    const int fewerRows = height - at.height, fewerColumns = width - at.width;
    rowsFirst = !vertical.isCopy() && !horizontal.isCopy() && fewerRows > 0 &&
                fewerRows > 2 * int64_t(fewerColumns);
  }

  static Placement placed(const Sizes &sizes, int height, int width) {
    const Placement at = place(sizes, height, width);
    if (at.height == 0 || at.width == 0)
      throw PictureError(CGC_INVALID_FILE, "is too narrow: " + std::to_string(width) + " x " +
                                               std::to_string(height) + " pixels are resized to " +
                                               std::to_string(at.width) + " x " +
                                               std::to_string(at.height));
    return at;
  }
};

/// Writes the part of a table that an axis has: its outputs are [begin, begin + axis.count()) of
/// `count`. `first` is the first input that was packed. Returns what is behind it.
int32_t *packAxis(const Axis &axis, Covered covered, int count, int taps, int first, int32_t *to) {
  std::fill_n(to, count, -1);
  std::fill_n(to + count, ptrdiff_t(count) * taps, 0);
  for (int i = 0; i < covered.count; ++i) {
    const int output = covered.begin + i;
    to[output] = axis.firstInput(i) - first;
    for (int tap = 0; tap < axis.taps(i); ++tap)
      to[count * ptrdiff_t(1 + tap) + output] = axis.weight(i, tap);
  }
  return to + count * ptrdiff_t(1 + taps);
}

/// Writes the table of a picture of which `columns` columns are packed, from `column` on, and the
/// rows that the result needs.
void packTable(const Sizes &sizes, const Plan &plan, int columns, int column,
               const Packed &packed) {
  const int taps = packed.taps(sizes);
  int32_t *to = packed.table.data();
  *to++ = columns;
  *to++ = plan.rowsFirst;
  *to++ = sizes.fill;
  to = packAxis(plan.horizontal, plan.columns, sizes.width, taps, column, to);
  packAxis(plan.vertical, plan.rows, sizes.height, taps, plan.vertical.firstInput(), to);
}

/// Reads the picture from its first row to its end, of which chooseColumns() gave `column`, and
/// writes its result.
void resize(const Sizes &sizes, const Plan &plan, RowReader &picture, int column,
            const Result &result, Scratch &scratch) {
  const Covered &rows = plan.rows, &columns = plan.columns;
  const Axis &vertical = plan.vertical, &horizontal = plan.horizontal;
  const int channels = picture.channels();
  const int inputRows = vertical.endInput() - vertical.firstInput();
  const ptrdiff_t inPitch =
      alignedTo32(int64_t(picture.columns()) * channels + horizontal.inSlack(channels));
  const ptrdiff_t outPitch = alignedTo32(int64_t(columns.count) * channels + 4);
  uint8_t *const resized = reserve(scratch.resized, outPitch * rows.count);
  picture.skip(vertical.firstInput());
  if (plan.rowsFirst) {
    uint8_t *const input = reserve(scratch.band, inPitch * inputRows);
    uint8_t *const middle = reserve(scratch.middle, inPitch * rows.count);
    picture.read(input, inPitch, inputRows);
    const int bytes = int(alignedTo32(int64_t(picture.columns()) * channels));
    for (int row = 0; row < rows.count; ++row)
      vertical.resizeRow(input, inPitch, vertical.firstInput(), row, middle + row * inPitch, bytes);
    horizontal.resizeColumns(middle, inPitch, column, resized, outPitch, rows.count, channels);
  } else {
    constexpr int kBand = 16; // Rows that stay in the cache.
    uint8_t *const band = reserve(scratch.band, inPitch * kBand);
    uint8_t *const middle = reserve(scratch.middle, outPitch * inputRows);
    for (int row = 0; row < inputRows; row += kBand) {
      const int count = std::min(kBand, inputRows - row);
      picture.read(band, inPitch, count);
      horizontal.resizeColumns(band, inPitch, column, middle + row * outPitch, outPitch, count,
                               channels);
    }
    for (int row = 0; row < rows.count; ++row)
      vertical.resizeRow(middle, outPitch, vertical.firstInput(), row, resized + row * outPitch,
                         int(outPitch));
  }
  picture.skip(picture.height() - vertical.endInput());

  // Beside the picture, and in CMYK, a row is put together.
  const bool whole = columns.count == sizes.width && channels == 3;
  uint8_t fill[4], background[3];
  std::fill_n(fill, 4, uint8_t(sizes.fill));
  if (channels == 4)
    convertCmyk(fill, background, 1);
  else
    std::copy_n(fill, 3, background);
  uint8_t *const line = reserve(scratch.row, int64_t(sizes.width) * 3);
  for (int y = 0; y < sizes.height; ++y) {
    const bool inside = y >= rows.begin && y < rows.begin + rows.count;
    const uint8_t *const from = resized + (y - rows.begin) * outPitch;
    if (whole && inside) {
      writeRow(from, sizes, result, y);
      continue;
    }
    for (int x = 0; x < sizes.width; ++x)
      std::copy_n(background, 3, line + ptrdiff_t(x) * 3);
    uint8_t *const to = line + ptrdiff_t(columns.begin) * 3;
    if (inside && channels == 4)
      convertCmyk(from, to, columns.count);
    else if (inside)
      std::copy_n(from, columns.count * 3, to);
    writeRow(line, sizes, result, y);
  }
}

} // namespace

void transform(const Sizes &sizes, RowReader &picture, const Result &result, Scratch &scratch) {
  const Plan plan(sizes, picture.height(), picture.width());
  const int column =
      picture.chooseColumns(plan.horizontal.firstInput(), plan.horizontal.endInput());
  resize(sizes, plan, picture, column, result, scratch);
}

int Packed::taps(const Sizes &sizes) const {
  return int((table.size() - kHeader) / size_t(sizes.height + sizes.width)) - 1;
}

void pack(const Sizes &sizes, RowReader &picture, const Packed &packed, Scratch &scratch) {
  const Plan plan(sizes, picture.height(), picture.width());
  const Axis &vertical = plan.vertical, &horizontal = plan.horizontal;
  const int column = picture.chooseColumns(horizontal.firstInput(), horizontal.endInput());
  const int rows = vertical.endInput() - vertical.firstInput();
  const int64_t pitch = int64_t(picture.columns()) * 3;
  if (picture.channels() == 3 && pitch * rows <= int64_t(packed.pixels.size()) &&
      std::max(vertical.mostTaps(), horizontal.mostTaps()) <= packed.taps(sizes)) {
    picture.skip(vertical.firstInput());
    picture.read(packed.pixels.data(), pitch, rows);
    picture.skip(picture.height() - vertical.endInput());
    packTable(sizes, plan, picture.columns(), column, packed);
    return;
  }
  std::array<uint8_t, 3 * 256> same;
  for (size_t i = 0; i < same.size(); ++i)
    same[i] = uint8_t(i % 256);
  resize(sizes, plan, picture, column,
         {std::as_bytes(std::span(same)), 1, true,
          reinterpret_cast<std::byte *>(packed.pixels.data())},
         scratch);
  const Sizes done{sizes.height, sizes.width, sizes.filter, ResizeMode::Squash, 0, 0};
  packTable(done, Plan(done, sizes.height, sizes.width), sizes.width, 0, packed);
}

} // namespace cgc_images
