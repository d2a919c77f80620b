// References of sum_rows_*.
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

template <class T> void sumRows(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0];
  const int64_t batches = x.sizes[0], rows = x.sizes[1], columns = x.sizes[2];
  const int64_t batchStride = strideOf(x, 0), rowStride = strideOf(x, 1);
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t column = 0; column < columns; ++column) {
      const T *const first = dataOf<T>(x) + batch * batchStride + column;
      const float sum = sumOf(rows, [&](int64_t row) { return toFloat(first[row * rowStride]); });
      storeSum<T>(a.writes[0], batch * columns + column, sum * static_cast<float>(a.floats[0]));
    }
}

} // namespace

CGC_FLOAT_REFERENCES(sum_rows, sumRows)

} // namespace cgc::reference
