// References of rows_*.
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

template <class T> void pickRows(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0], &indices = a.reads[1];
  const int64_t batches = x.sizes[0], rows = x.sizes[1], columns = x.sizes[2];
  for (int64_t batch = 0; batch < batches; ++batch) {
    const int64_t row = indices.data ? indexAt(indices, batch, rows) : 0;
    std::copy_n(dataOf<T>(x) + batch * strideOf(x, 0) + row * strideOf(x, 1), columns,
                resultOf<T>(a.writes[0]) + batch * columns);
  }
}

} // namespace

CGC_FLOAT_REFERENCES(rows, pickRows)

} // namespace cgc::reference
