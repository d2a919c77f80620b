// embedding_*: gathers rows of a table by index and adds positions.
#include "runtime/kernels/rowwise/embedding.h"

#include "runtime/kernels/device/kernel_rows.h"
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
  griddepLaunchDependents();
  griddepWait();
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

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const EmbeddingLaunch l = *checkEmbedding(launch, kDTypeOf<T>);
  return KernelParameters(EmbeddingParameters<T>{
      static_cast<const T *>(at.reads[0]), static_cast<const T *>(at.reads[2]), at.reads[1],
      static_cast<T *>(at.writes[0]),
      static_cast<RowStatistics *>(kHasRowStatistics<T> ? at.writes[1] : nullptr), l.rows,
      l.columns, l.tableRows, l.positionRows, launch.reads[1].dtype == DType::I64, l.vectors});
}

} // namespace

CGC_FLOAT_KERNELS(embedding, embedding, bind)

} // namespace cgc
