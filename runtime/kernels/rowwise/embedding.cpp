// Checks launches of embedding_*.
#include "runtime/kernels/rowwise/embedding.h"

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/rowwise/warp_rows.h"

namespace cgc {

Result<EmbeddingLaunch> checkEmbedding(const LaunchView &launch, DType dtype) {
  const OperandView &table = launch.reads[0], &ids = launch.reads[1], &positions = launch.reads[2],
                    &y = launch.writes[0];
  if (!isDenseOf(table, dtype, elementsOf(table)) || table.sizes.size() != 2 ||
      elementsOf(table) == 0)
    return refuseLaunch("the table has to be dense, [rows, columns]");
  const int64_t tableRows = table.sizes[0], columns = table.sizes[1];
  const uint64_t rows = elementsOf(ids);
  if (!isIndicesOf(ids, rows) || rows == 0 || rows > INT32_MAX)
    return refuseLaunch("ids have to be dense i64 or i32");
  const auto elements = checkedMul(rows, columns);
  if (!elements || !isDenseOf(y, dtype, *elements))
    return refuseLaunch("y has to be dense, a row for each id");
  const int64_t positionRows =
      positions.isPresent() ? static_cast<int64_t>(elementsOf(positions)) / columns : 1;
  if (positionRows == 0 || !isAbsentOrDenseOf(positions, dtype, positionRows * columns))
    return refuseLaunch("positions have to be dense, with as many columns as the table");
  if (!hasShape(launch, warpRowBlocks(rows), kWarpRowThreads))
    return refuseWarpRows();
  const bool vectors = hasVectorRows(table, columns) && hasVectorRows(positions, columns) &&
                       hasVectorRows(y, columns);
  if (hasRowStatistics(dtype) && launch.writes[1].isPresent())
    CGC_TRY(checkRowStatistics(launch.writes[1], rows, columns,
                               embeddingWritesRowStatistics(columns, vectors),
                               "a multiple of 64 columns"));
  return EmbeddingLaunch{static_cast<int64_t>(rows), columns, tableRows, positionRows, vectors};
}

CGC_FLOAT_KERNEL_CHECKS(embedding, checkEmbedding)

} // namespace cgc
