// embedding_*: gathers rows of a table by index and adds positions.
#include "runtime/kernels/rowwise/embedding.h"

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/rowwise/row_statistics.cuh"
#include "runtime/kernels/rowwise/warp_rows.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct EmbeddingParameters {
  const T *table, *positions; ///< positions may be null.
  const void *ids;
  T *y;
  RowStatistics *statistics; ///< Of y, [rows, columns / 64]; null if not requested.
  int64_t rows, columns, tableRows, positionRows; ///< Row r gets position r % positionRows.
  bool isWide, vectors;
};

/// As addRow() with vectors, and writes the row statistics of `to`. `columns` is a multiple of
/// kStatisticsGroup.
template <class T>
__device__ void addRowWithStatistics(T *to, const T *from, const T *addend, int64_t columns,
                                     RowStatistics *statistics) {
  constexpr int kSize = Vector<T>::kSize;
  for (int64_t first = 0; first < columns; first += 32 * kSize) {
    const int64_t column = first + threadIdx.x % 32 * kSize;
    float values[kSize];
    if (column < columns)
      addElements(to, from, addend, column, values);
    // All lanes of a warp call storeRowStatistics().
    storeRowStatistics<T>(statistics + column / kStatisticsGroup, column < columns, values);
  }
}

template <class T>
__global__ void __launch_bounds__(kWarpRowThreads)
    embedding(const __grid_constant__ EmbeddingParameters<T> p) {
  releaseSuccessor();
  waitForPredecessor();
  const int64_t row = warpRow();
  if (row >= p.rows)
    return;
  const T *position = p.positions ? p.positions + row % p.positionRows * p.columns : nullptr;
  const T *from = p.table + loadIndex(p.ids, p.isWide, row, p.tableRows) * p.columns;
  T *y = p.y + row * p.columns;
  if constexpr (kHasRowStatistics<T>)
    if (p.statistics)
      return addRowWithStatistics(y, from, position, p.columns,
                                  p.statistics + row * (p.columns / kStatisticsGroup));
  addRow(y, from, position, p.columns, p.vectors);
}

template <class T> Result<KernelParameters> bind(const KernelArguments &a) {
  constexpr DType dtype = kDTypeOf<T>;
  const TensorView &table = a.reads[0], &ids = a.reads[1], &positions = a.reads[2],
                   &y = a.writes[0];
  if (!isDenseOf(table, dtype, elementsOf(table)) || table.sizes.size() != 2 ||
      elementsOf(table) == 0)
    return refuseArguments("the table has to be dense, [rows, columns]");
  const int64_t tableRows = table.sizes[0], columns = table.sizes[1];
  const uint64_t rows = elementsOf(ids);
  if (!isIndicesOf(ids, rows) || rows == 0 || rows > INT32_MAX)
    return refuseArguments("ids have to be dense i64 or i32");
  const auto elements = checkedMul(rows, columns);
  if (!elements || !isDenseOf(y, dtype, *elements))
    return refuseArguments("y has to be dense, a row for each id");
  const int64_t positionRows =
      positions.data ? static_cast<int64_t>(elementsOf(positions)) / columns : 1;
  if (positionRows == 0 || !isAbsentOrDenseOf(positions, dtype, positionRows * columns))
    return refuseArguments("positions have to be dense, with as many columns as the table");
  if (!hasLaunch(a, warpRowBlocks(rows), kWarpRowThreads))
    return refuseWarpRows();
  const bool vectors = hasVectorRows(table, columns) && hasVectorRows(positions, columns) &&
                       hasVectorRows(y, columns);
  const TensorView statistics = kHasRowStatistics<T> ? a.writes[1] : TensorView();
  if (statistics.data && !embeddingWritesRowStatistics(columns, vectors))
    return refuseArguments(
        "row statistics are written of a multiple of 64 columns, if all tensors begin "
        "at multiples of 16 bytes");
  if (statistics.data && !isRowStatisticsOf(statistics, rows, columns))
    return refuseArguments("row statistics have to be dense, two f32 for each 64 columns of a row");
  return KernelParameters(EmbeddingParameters<T>{
      static_cast<const T *>(table.data), static_cast<const T *>(positions.data), ids.data,
      static_cast<T *>(y.data), static_cast<RowStatistics *>(statistics.data),
      static_cast<int64_t>(rows), columns, tableRows, positionRows, ids.dtype == DType::I64,
      vectors});
}

} // namespace

CGC_FLOAT_KERNELS(embedding, embedding, bind)

} // namespace cgc
