// References of embedding_*.
#include "runtime/kernels/rowwise/reference_rows.h"
#include "runtime/kernels/rowwise/reference_statistics.h"

namespace cgc::reference {
namespace {

template <class T> void embedding(const ReferenceArguments &a) {
  const TensorView &table = a.reads[0], &ids = a.reads[1], &positions = a.reads[2];
  const int64_t columns = table.sizes[1], rows = elementsOf(ids);
  const int64_t positionRows = positions.data ? elementsOf(positions) / columns : 1;
  // The kernel in f32 has no operand for row statistics.
  float *const statistics = a.writes.size() > 1 ? resultOf<float>(a.writes[1]) : nullptr;
  for (int64_t row = 0; row < rows; ++row) {
    T *const y = resultOf<T>(a.writes[0]) + row * columns;
    const T *const position =
        positions.data ? dataOf<T>(positions) + row % positionRows * columns : nullptr;
    addRow(y, dataOf<T>(table) + indexAt(ids, row, table.sizes[0]) * columns, position, columns);
    if (statistics)
      storeRowStatistics(y, row, columns, statistics);
  }
}

} // namespace

CGC_FLOAT_REFERENCES(embedding, embedding)

} // namespace cgc::reference
