// References of resize_*.
#include "runtime/kernels/images/resize.h"
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

template <class T> void resize(const ReferenceArguments &a) {
  const TensorView &pixels = a.reads[0], &table = a.reads[1], &values = a.reads[2],
                   &y = a.writes[0];
  const int64_t images = y.sizes[0], rows = y.sizes[2], columns = y.sizes[3];
  ResizeLaunch l{};
  l.integers = table.sizes[1];
  l.taps = int((l.integers - kResizeHeader) / (rows + columns)) - 1;
  l.rows = int(rows);
  l.columns.divisor = uint32_t(columns);
  for (int64_t image = 0; image < images; ++image)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        int result[3];
        resizePixel(dataOf<uint8_t>(pixels) + image * pixels.sizes[1], pixels.sizes[1] / 3,
                    dataOf<int32_t>(table) + image * l.integers, l, int(row), int(column), result);
        for (int64_t c = 0; c < 3; ++c)
          resultOf<T>(y)[((image * 3 + c) * rows + row) * columns + column] =
              dataOf<T>(values)[c * 256 + result[c]];
      }
}

} // namespace

CGC_FLOAT_REFERENCES(resize, resize)

} // namespace cgc::reference
