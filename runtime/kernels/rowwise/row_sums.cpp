// Checks launches of row_sums_*.
#include "runtime/kernels/rowwise/row_sums.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<RowSumsLaunch> checkRowSums(const LaunchView &launch, DType dtype) {
  const OperandView &x = launch.reads[0], &y = launch.writes[0];
  const uint64_t elements = elementsOf(x);
  const int64_t columns = launch.ints[0];
  if (!isDenseOf(x, dtype, elements) || elements == 0 || elements > kRowSumsMostElements ||
      columns < 1 || elements % columns != 0)
    return refuseLaunch("x has to be dense, [rows, columns], of fewer than 2^30 elements");
  const auto rows = static_cast<int64_t>(elements) / columns;
  const uint64_t sums = elementsOf(y);
  if ((!isDenseOf(y, dtype, sums) && !isDenseOf(y, DType::F32, sums)) || sums == 0 ||
      sums % rows != 0)
    return refuseLaunch("y has to be dense, [rows, splits], of the dtype of x or f32");
  const auto splits = static_cast<int64_t>(sums) / rows;
  if (splits > 1 && (columns <= kRowSumsWarpColumns || splits > columns))
    return refuseLaunch("only rows longer than 1024 have splits, none more than columns");
  if (!hasShape(launch, rowSumsBlocks(rows, columns, splits), kRowSumsThreads))
    return refuseLaunch("the grid has to be {ceil(rows / 4), 1, 1}, or {rows times splits, 1, 1} "
                        "for rows longer than 1024, the block {128, 1, 1}, without shared memory");
  // Splits begin at multiples of 16 bytes.
  const int64_t part = ((columns + splits - 1) / splits + 7) / 8 * 8;
  return RowSumsLaunch{rows, columns, splits, part, hasVectorRows(x, columns)};
}

CGC_FLOAT_KERNEL_CHECKS(row_sums, checkRowSums)

} // namespace cgc
